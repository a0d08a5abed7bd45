import { readFileSync, readdirSync } from 'node:fs';
import { createRequire } from 'node:module';
import { parseEnv } from 'node:util';
import { describe, expect, it } from '@jest/globals';
import { parse, parseAllDocuments } from 'yaml';
import { loadEnv } from '../src/config/env.js';
import { verifies } from './support/verifies.js';

const FOLDER = 'docker/kubernetes';
const require = createRequire(import.meta.url);

interface PodSpec {
  automountServiceAccountToken?: boolean;
  securityContext?: object;
  containers: {
    name: string;
    envFrom: { secretRef?: { name: string } }[];
    env?: { name: string; value?: string }[];
    securityContext?: object;
  }[];
}
interface KubernetesObject {
  apiVersion: string;
  kind: string;
  metadata: { name: string };
  spec: { template?: { spec: PodSpec } };
}
type Model = new (content: object) => { validate(): void };

const text = (file: string): string => readFileSync(`${FOLDER}/${file}`, 'utf8');
const kustomization = parse(text('kustomization.yaml')) as { resources: string[] };
const objects = kustomization.resources.flatMap((file) =>
  parseAllDocuments(text(file)).map((document) => document.toJS() as KubernetesObject),
);
const pods = objects.flatMap(({ metadata, spec }) =>
  spec.template ? [{ name: metadata.name, pod: spec.template.spec }] : [],
);

/** The class with the schema of an object, from Kubernetes' or the Prometheus operator's own definitions. */
function modelOf({ apiVersion, kind }: KubernetesObject): Model {
  const models = apiVersion.startsWith('monitoring.') ? '@kubernetes-models/prometheus-operator' : 'kubernetes-models';
  return (require(`${models}/${apiVersion}/${kind}`) as Record<string, Model>)[kind];
}

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

  it('gives the key of the operator to the migration only', () => {
    const secretsOf = (pod: PodSpec) => pod.containers[0].envFrom.flatMap(({ secretRef }) => secretRef?.name ?? []);
    const holders = pods.filter(({ pod }) => secretsOf(pod).includes('slipway-operator'));
    expect(holders.map(({ name }) => name)).toEqual(['slipway-migrate']);
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
