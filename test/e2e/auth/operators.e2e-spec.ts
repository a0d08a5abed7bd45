import { describe, expect } from '@jest/globals';
import { testAccount, testApp, type TestAccount } from '../../support/app.js';
import { until } from '../../support/until.js';
import { verifies } from '../../support/verifies.js';

const app = testApp();
const other = testAccount(app);

const set = (by: TestAccount, { id }: TestAccount, body: object) => app.as(by).patch(`/accounts/${id}`, body);
const listed = async (by: TestAccount) => (await app.as(by).get('/accounts')).status;

describe('operators', () => {
  verifies('operators:several', 'are several, in every process within 5 s, and a last one stays', async () => {
    const second = await app.sibling();
    const listedThere = async () => (await second.as(other).get('/accounts')).status;
    expect([await listed(other), await listedThere()]).toEqual([403, 403]);
    expect((await set(other, other, { isOperator: true })).status).toBe(403);
    expect((await set(app.operator, app.operator, { isOperator: false })).status).toBe(409);
    const made = await set(app.operator, other, { isOperator: true });
    expect([made.status, made.body.isOperator]).toEqual([200, true]);
    await until(async () => (await listedThere()) === 200, 'the other process knows the new operator');
    expect((await set(app.operator, other, { disabled: true })).status).toBe(409);
    expect((await set(other, app.operator, { isOperator: false })).status).toBe(200);
    await until(async () => (await listed(app.operator)) === 403, 'the former operator is none');
    expect((await set(other, app.operator, { isOperator: true })).status).toBe(200);
    await until(async () => (await listed(app.operator)) === 200, 'the operator is one again');
  });

  verifies('operators:last', 'keep at least one when two remove each other at the same moment', async () => {
    const [first, last] = [app.operator, await app.account({ isOperator: true })];
    for (const { id } of [other])
      await app.database.query('UPDATE accounts SET is_operator = false WHERE id = $1', [id]);
    const answers = await Promise.all([
      set(first, last, { isOperator: false }),
      set(last, first, { isOperator: false }),
    ]);
    // The second one may find its own right gone already.
    expect(answers.map(({ status }) => status === 200)).toEqual(expect.arrayContaining([true, false]));
    expect([403, 409]).toContain(Math.max(...answers.map(({ status }) => status)));
    const [{ count }] = await app.database.query<[{ count: number }]>(
      'SELECT count(*)::int AS count FROM accounts WHERE is_operator',
    );
    expect(count).toBe(1);
    await app.database.query('UPDATE accounts SET is_operator = true WHERE id = $1', [first.id]);
  });

  verifies('operators:change', 'are not disabled ones, and change one member at a time', async () => {
    const off = await app.account();
    expect((await set(app.operator, off, { disabled: true })).status).toBe(200);
    expect((await set(app.operator, off, { isOperator: true })).status).toBe(409);
    for (const body of [{}, { isOperator: null }, { isOperator: true, disabled: false }]) {
      expect([body, (await set(app.operator, off, body)).status]).toEqual([body, 400]);
    }
  });
});
