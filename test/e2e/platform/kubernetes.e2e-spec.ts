import { execFileSync } from 'node:child_process';
import { appendFileSync, cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseEnv } from 'node:util';
import { afterAll, beforeAll, describe, expect } from '@jest/globals';
import { parseAllDocuments } from 'yaml';
import { generateApiKey } from '../../../src/modules/auth/api-key.js';
import { emptyDatabase } from '../../support/app.js';
import { modelOf, podsOf, type KubernetesObject } from '../../support/kubernetes-objects.js';
import { cleanUpPrograms, dataFolder, runProgram } from '../../support/program.js';
import { startS3 } from '../../support/s3.js';
import { freePort } from '../../support/upstream/upstream-net.js';
import { until } from '../../support/until.js';
import { longVerifies, verifies } from '../../support/verifies.js';

const key = generateApiKey();
const own: Record<string, string> = {
  ENCRYPTION_KEYS: `k1:${Buffer.alloc(32, 7).toString('base64')}`,
  METRICS_TOKEN: 'a-token-for-metrics-of-32-letters',
  BOOTSTRAP_API_KEY: key,
  AWS_ACCESS_KEY_ID: 'S3RVER',
  AWS_SECRET_ACCESS_KEY: 'S3RVER',
};

let objects: KubernetesObject[];
let database: Awaited<ReturnType<typeof emptyDatabase>>;
let s3: Awaited<ReturnType<typeof startS3>>;

// scripts/test.mjs leaves this file out, with a note, where there is no kubectl.
beforeAll(async () => {
  objects = render();
  [database, s3] = await Promise.all([emptyDatabase(), startS3()]);
});

afterAll(async () => {
  await cleanUpPrograms();
  await Promise.all([database?.drop(), s3?.close()]);
});

/** The output of kustomize, with the values above in the secrets. @param added lines of kustomization.yaml */
function render(added = ''): KubernetesObject[] {
  const folder = mkdtempSync(join(tmpdir(), 'slipway-kustomize-'));
  try {
    cpSync('docker/kubernetes', folder, { recursive: true });
    for (const name of ['secrets', 'metrics', 'operator']) {
      const values = Object.entries(parseEnv(readFileSync(join(folder, `${name}.env.example`), 'utf8')));
      const lines = values.map(([setting, value]) => `${setting}=${own[setting] ?? value}\n`);
      writeFileSync(join(folder, `${name}.env`), lines.join(''));
    }
    appendFileSync(join(folder, 'kustomization.yaml'), added);
    const text = execFileSync('kubectl', ['kustomize', folder], { encoding: 'utf8' });
    const rendered = parseAllDocuments(text).map((document) => document.toJS() as KubernetesObject);
    for (const { kind, data } of rendered) {
      // kustomize breaks long values into lines; Kubernetes reads base64 with line breaks, the schema does not allow them.
      for (const name in data) if (kind === 'Secret') data[name] = data[name].replaceAll('\n', '');
    }
    return rendered;
  } finally {
    rmSync(folder, { recursive: true });
  }
}

const named = (kind: string, name: string) => objects.find((one) => one.kind === kind && one.metadata.name === name);

/** The environment of a pod. @throws TypeError when it names an object that was not rendered */
function envOf(podName: string): Record<string, string> {
  const { pod } = podsOf(objects).find(({ name }) => name === podName) as { pod: ReturnType<typeof podsOf>[0]['pod'] };
  const env: Record<string, string> = {};
  for (const { configMapRef, secretRef } of pod.containers[0].envFrom) {
    if (configMapRef) Object.assign(env, named('ConfigMap', configMapRef.name)!.data);
    for (const [name, value] of Object.entries((secretRef && named('Secret', secretRef.name)!.data) ?? {})) {
      env[name] = Buffer.from(value, 'base64').toString();
    }
  }
  for (const { name, value } of pod.containers[0].env ?? []) if (value !== undefined) env[name] = value;
  return env;
}

/** The environment of a pod with the addresses and folders of this machine. */
async function localEnvOf(podName: string): Promise<Record<string, string>> {
  const { REDIS_URL: _, ...env } = envOf(podName);
  const port = String(await freePort());
  const redis = process.env.TEST_REDIS_URL;
  return {
    ...env,
    ...(redis && { REDIS_URL: redis }),
    DATABASE_URL: database.url,
    BLOB_URL: s3.blobUrl,
    DATA_DIR: await dataFolder(),
    PORT: port,
    ADVERTISE_URL: `http://127.0.0.1:${port}`,
  };
}

const MODULE = `const tool = { name: 'greet', description: 'Greets', inputSchema: { type: 'object' } };
const results = {
  initialize: ({ protocolVersion }) => ({
    protocolVersion, capabilities: { tools: {} }, serverInfo: { name: 'greeter', version: '1.0.0' },
  }),
  'tools/list': () => ({ tools: [tool] }),
  'tools/call': () => ({ content: [{ type: 'text', text: 'hello' }] }),
};
export default { async fetch(request) {
  const { id, method, params } = await request.json();
  if (id === undefined) return new Response(null, { status: 202 });
  const found = results[method];
  return Response.json({ jsonrpc: '2.0', id, ...(found ? { result: found(params) } : { error: { code: -32601, message: method } }) });
} };`;

describe('the output of kustomize', () => {
  verifies(
    'kubernetes:rendered',
    'has valid objects, the image of the operator, and every object that it names',
    () => {
      for (const object of objects) {
        const Model = modelOf(object);
        expect(() => new Model(object).validate()).not.toThrow();
      }
      const pods = podsOf(objects);
      expect(pods.map(({ name }) => name).sort()).toEqual([
        'slipway-api',
        'slipway-backup',
        'slipway-host',
        'slipway-migrate',
        'slipway-worker',
      ]);
      for (const { name, pod } of pods) {
        expect(pod.containers[0].image).toMatch(/^registry\.example\.com\/slipway:\d/);
        expect(envOf(name)).toMatchObject({
          PUBLIC_URL: 'https://slipway.example.com',
          DATABASE_URL: expect.any(String),
        });
        const { initContainers = [], containers } = pod;
        for (const container of initContainers) {
          const { name: own, image, envFrom } = container;
          const shared = containers[0].envFrom.slice(0, 2);
          expect({ own, image, envFrom }).toEqual({
            own: 'wait-for-migration',
            image: containers[0].image,
            envFrom: shared,
          });
        }
        expect([name, initContainers.length]).toEqual([name, /api|worker|host/.test(name) ? 1 : 0]);
      }
      const credentials = JSON.stringify(objects.filter(({ kind }) => kind === 'PodMonitor')).matchAll(
        /"credentials":(\{.*?\})/g,
      );
      const tokens = [...credentials].map(([, text]) => {
        const { name, key: entry } = JSON.parse(text) as { name: string; key: string };
        return named('Secret', name)?.data?.[entry];
      });
      expect(tokens).toEqual([Buffer.from(own.METRICS_TOKEN).toString('base64')]);
    },
  );

  verifies('kubernetes:rendered', 'names no number of pods with the component of the autoscalers', () => {
    const replicasOf = (rendered: KubernetesObject[]) =>
      rendered.flatMap(({ kind, spec }) => (kind === 'Deployment' ? [(spec as { replicas?: number }).replicas] : []));
    expect(replicasOf(objects)).toEqual([2, 2]);
    const scaled = render('components: [autoscaling]\n');
    expect(replicasOf(scaled)).toEqual([undefined, undefined]);
    expect(scaled.filter(({ kind }) => kind === 'HorizontalPodAutoscaler')).toHaveLength(2);
    for (const object of scaled) {
      const Model = modelOf(object);
      expect(() => new Model(object).validate()).not.toThrow();
    }
  });

  longVerifies(
    'kubernetes:rendered',
    'has settings with which processes migrate, publish a module and call it',
    async () => {
      const migration = runProgram('cli/slipway.js', await localEnvOf('slipway-migrate'), { args: ['migrate'] });
      expect([await migration.ended, migration.output()]).toEqual([0, expect.any(String)]);
      const envs = await Promise.all(['slipway-api', 'slipway-worker', 'slipway-host'].map(localEnvOf));
      expect(envs.map((env) => env.BOOTSTRAP_API_KEY)).toEqual([undefined, undefined, undefined]);
      envs.forEach((env) => runProgram('main.js', env));
      const urls = envs.map(({ PORT }) => `http://127.0.0.1:${PORT}`);
      for (const url of urls) await until(async () => (await fetch(`${url}/ready`)).ok, `${url} is ready`, 150_000);

      const send = async (method: string, path: string, body?: object) => {
        const isForm = body instanceof FormData;
        const answer = await fetch(`${urls[0]}${path}`, {
          method,
          headers: { authorization: `Bearer ${key}`, ...(body && !isForm && { 'content-type': 'application/json' }) },
          body: isForm ? body : body && JSON.stringify(body),
        });
        const text = await answer.text();
        if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${text}`);
        return JSON.parse(text || 'null') as Record<string, unknown>;
      };
      await send('PUT', '/namespaces/acme');
      await send('PUT', '/servers/acme%2Fgreeter', {});
      const form = new FormData();
      form.set('payload', JSON.stringify({ type: 'hosted' }));
      form.set('module', new Blob([MODULE]), 'module.js');
      await send('PUT', '/servers/acme%2Fgreeter/releases', form);
      const release = await until(async () => {
        const found = await send('GET', '/servers/acme%2Fgreeter/releases/latest');
        return /SUCCESS|FAILURE/.test(String(found.status)) && found;
      }, 'the release ends');
      expect(release).toMatchObject({ status: 'SUCCESS' });
      await send('PUT', '/connect/acme/greeter', { server: 'acme/greeter' });
      expect(await send('POST', '/connect/acme/greeter/.tools/greet', {})).toMatchObject({
        content: [{ text: 'hello' }],
      });
      const metrics = await Promise.all(urls.map(async (url) => (await fetch(`${url}/metrics`)).status));
      expect(metrics).toEqual([401, 401, 200]);
    },
  );
});
