import { readFileSync, readdirSync } from 'node:fs';
import { parseEnv } from 'node:util';
import { describe, expect, it } from '@jest/globals';
import { parse, parseAllDocuments } from 'yaml';
import { loadEnv } from '../src/config/env.js';
import { modelOf, podsOf, secretsOf, type KubernetesObject } from './support/kubernetes-objects.js';
import { verifies } from './support/verifies.js';

const FOLDER = 'docker/kubernetes';

const text = (file: string): string => readFileSync(`${FOLDER}/${file}`, 'utf8');
const kustomization = parse(text('kustomization.yaml')) as { resources: string[] };
const objects = kustomization.resources.flatMap((file) =>
  parseAllDocuments(text(file)).map((document) => document.toJS() as KubernetesObject),
);
const pods = podsOf(objects);

describe('the sample for Kubernetes', () => {
  it('lists each of its files', () => {
    const files = readdirSync(FOLDER).filter((file) => file.endsWith('.yaml') && file !== 'kustomization.yaml');
    expect([...kustomization.resources].sort()).toEqual(files.sort());
  });

  verifies('kubernetes:valid', 'has objects that the schemas of their kinds accept', () => {
    for (const object of objects) {
      const Model = modelOf(object);
      expect(() => new Model(object).validate()).not.toThrow();
    }
    const [first] = objects;
    const Model = modelOf(first);
    expect(() => new Model({ ...first, spec: { replicas: 'two' } }).validate()).toThrow();
  });

  verifies(
    'kubernetes:confined',
    'runs each container without root, capabilities or a writable root file system',
    () => {
      expect(pods.map(({ name }) => name)).toEqual([
        'slipway-migrate',
        'slipway-api',
        'slipway-worker',
        'slipway-host',
      ]);
      for (const { pod } of pods) {
        expect(pod).toMatchObject({
          automountServiceAccountToken: false,
          securityContext: { runAsNonRoot: true, runAsUser: 1000, seccompProfile: { type: 'RuntimeDefault' } },
          containers: [
            {
              securityContext: {
                allowPrivilegeEscalation: false,
                readOnlyRootFilesystem: true,
                capabilities: { drop: ['ALL'] },
              },
            },
          ],
        });
      }
    },
  );

  verifies('kubernetes:secrets', 'gives hosts neither the key of the operator nor the token for metrics', () => {
    const held = Object.fromEntries(pods.map(({ name, pod }) => [name, secretsOf(pod)]));
    expect(held).toEqual({
      'slipway-migrate': ['slipway', 'slipway-operator'],
      'slipway-api': ['slipway', 'slipway-metrics'],
      'slipway-worker': ['slipway', 'slipway-metrics'],
      'slipway-host': ['slipway'],
    });
    const keys = ['AWS_ACCESS_KEY_ID', 'AWS_SECRET_ACCESS_KEY', 'DATABASE_URL', 'ENCRYPTION_KEYS', 'REDIS_URL'];
    expect(Object.keys(parseEnv(text('secrets.env.example'))).sort()).toEqual(keys);
  });

  verifies('kubernetes:settings', 'sets what the service accepts in each role', () => {
    const shared = {
      HOST: '0.0.0.0',
      ...parseEnv(text('settings.env')),
      ...parseEnv(text('secrets.env.example')),
      ENCRYPTION_KEYS: `k1:${Buffer.alloc(32, 7).toString('base64')}`,
    };
    const roles = pods.flatMap(({ pod }) => {
      const own = Object.fromEntries(
        (pod.containers[0].env ?? []).map(({ name, value = '10.0.0.7' }) => [name, value]),
      );
      if (!own.ROLES) return [];
      const env = loadEnv({ ...shared, ...own, ADVERTISE_URL: own.ADVERTISE_URL.replace('$(POD_IP)', own.POD_IP) });
      return [[...env.roles].join()];
    });
    expect(roles).toEqual(['api', 'worker', 'host']);
  });
});
