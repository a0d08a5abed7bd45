import assert from 'node:assert/strict';
import { test } from 'node:test';
import { startSlipway } from '@slipway/module/testing';

test('an account creates and lists its own sample notes', async (context) => {
  const service = await startSlipway();
  context.after(() => service.stop());
  const [ann, bob] = [await service.account(), await service.account()];
  const created = await service.request(ann, 'POST', '/sample-notes', { text: 'Sunny' });
  assert.equal(created.status, 201);
  assert.deepEqual((await service.request(ann, 'GET', '/sample-notes')).body, { sampleNotes: [created.body] });
  assert.deepEqual((await service.request(bob, 'GET', '/sample-notes')).body, { sampleNotes: [] });
  assert.equal((await service.request(ann, 'POST', '/sample-notes', { text: 7 })).status, 400);
  assert.equal((await service.request(null, 'GET', '/sample-notes')).status, 401);
});
