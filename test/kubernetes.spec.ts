import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, utimesSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseEnv } from 'node:util';
import { describe, expect, it } from '@jest/globals';
import { parse, parseAllDocuments } from 'yaml';
import { loadEnv } from '../src/config/env.js';
import { modelOf, podsOf, secretsOf, type Container, type KubernetesObject } from './support/kubernetes-objects.js';
import { verifies } from './support/verifies.js';

const FOLDER = 'docker/kubernetes';

const text = (file: string): string => readFileSync(`${FOLDER}/${file}`, 'utf8');
const objectsOf = (file: string) =>
  parseAllDocuments(text(file)).map((document) => document.toJS() as KubernetesObject);
const kustomization = parse(text('kustomization.yaml')) as {
  resources: string[];
  patches: { path: string; target: { kind: string } }[];
};
const objects = kustomization.resources.flatMap(objectsOf);
const pods = podsOf(objects);
const [{ value: waiting }] = parse(text('wait-for-migration.yaml')) as [{ path: string; value: [Container] }];

const podOf = (wanted: string) => pods.find(({ name }) => name === wanted)!.pod;
const named = (kind: string, name: string) =>
  objects.find((object) => object.kind === kind && object.metadata.name === name);

describe('the sample for Kubernetes', () => {
  it('lists each of its files', () => {
    const files = readdirSync(FOLDER).filter((file) => file.endsWith('.yaml') && file !== 'kustomization.yaml');
    const { resources, patches } = kustomization;
    expect([...new Set([...resources, ...patches.map(({ path }) => path)])].sort()).toEqual(files.sort());
  });

  verifies('kubernetes:rendered', 'has objects that the schemas of their kinds accept', () => {
    for (const object of [...objects, ...objectsOf('autoscaling/autoscalers.yaml')]) {
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
        'slipway-backup',
      ]);
      for (const container of waiting) {
        expect(container.securityContext).toEqual(podOf('slipway-api').containers[0].securityContext);
      }
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
      'slipway-backup': ['slipway'],
    });
    expect(secretsOf({ containers: waiting })).toEqual(['slipway']);
    const keys = ['AWS_ACCESS_KEY_ID', 'AWS_SECRET_ACCESS_KEY', 'DATABASE_URL', 'ENCRYPTION_KEYS', 'REDIS_URL'];
    expect(Object.keys(parseEnv(text('secrets.env.example'))).sort()).toEqual(keys);
  });

  verifies('kubernetes:rendered', 'sets what the service accepts in each role', () => {
    const shared = {
      HOST: '0.0.0.0',
      ...parseEnv(text('settings.env')),
      ...parseEnv(text('secrets.env.example')),
      ENCRYPTION_KEYS: `k1:${Buffer.alloc(32, 7).toString('base64')}`,
    };
    const roles = pods.flatMap(({ pod }) => {
      const fields: Record<string, string> = { 'status.podIP': '10.0.0.7', 'metadata.name': 'slipway-host-0' };
      const own = Object.fromEntries(
        (pod.containers[0].env ?? []).map(({ name, value, valueFrom }) => [
          name,
          value ?? fields[valueFrom!.fieldRef.fieldPath],
        ]),
      );
      if (!own.ROLES) return [];
      const advertised = own.ADVERTISE_URL.replace(/\$\((\w+)\)/, (_, name: string) => own[name]);
      const env = loadEnv({ ...shared, ...own, ADVERTISE_URL: advertised });
      return [[env.roles.join(), env.internalUrl]];
    });
    expect(roles).toEqual([
      ['api', 'http://10.0.0.7:3000'],
      ['worker', 'http://10.0.0.7:3000'],
      ['host', 'http://slipway-host-0.slipway-host:3000'],
    ]);
    // The name of a host resolves by its headless service, also while it starts and drains.
    expect(named('StatefulSet', 'slipway-host')).toMatchObject({ spec: { serviceName: 'slipway-host' } });
    expect(named('Service', 'slipway-host')).toMatchObject({
      spec: { clusterIP: 'None', publishNotReadyAddresses: true },
    });
  });

  verifies('kubernetes:ingress', 'has an Ingress with the limits of docker/nginx.conf, and closes two paths', () => {
    const sample = readFileSync('docker/nginx.conf', 'utf8');
    const directive = (name: string) => new RegExp(`^ *${name} +(.+);`, 'm').exec(sample)?.[1];
    const seconds = (name: string) =>
      directive(name)?.replace(/^(\d+)([hs])$/, (_, n, u) => String(u === 'h' ? n * 3600 : n));
    const prefix = 'nginx.ingress.kubernetes.io';
    expect(named('Ingress', 'slipway')?.metadata.annotations).toEqual({
      [`${prefix}/proxy-body-size`]: directive('client_max_body_size'),
      [`${prefix}/proxy-buffering`]: directive('proxy_buffering'),
      [`${prefix}/proxy-request-buffering`]: directive('proxy_request_buffering'),
      [`${prefix}/proxy-read-timeout`]: seconds('proxy_read_timeout'),
      [`${prefix}/proxy-send-timeout`]: seconds('proxy_send_timeout'),
      [`${prefix}/proxy-connect-timeout`]: seconds('proxy_connect_timeout'),
    });
    expect(named('Ingress', 'slipway-closed')?.metadata.annotations).toEqual({
      [`${prefix}/denylist-source-range`]: '0.0.0.0/0,::/0',
    });
    const host = new URL(parseEnv(text('settings.env')).PUBLIC_URL ?? '').hostname;
    const pathsOf = (name: string) => {
      const { spec } = named('Ingress', name) as unknown as {
        spec: { rules: { host: string; http: { paths: { path: string; pathType: string }[] } }[] };
      };
      return spec.rules.map((rule) => [
        rule.host,
        ...rule.http.paths.map(({ path, pathType }) => `${pathType} ${path}`),
      ]);
    };
    expect(pathsOf('slipway')).toEqual([[host, 'Prefix /']]);
    expect(pathsOf('slipway-closed')).toEqual([[host, 'Prefix /internal', 'Prefix /metrics']]);
  });

  verifies('kubernetes:migration', 'has pods that wait for the migration', () => {
    expect(kustomization.patches).toEqual([
      { path: 'wait-for-migration.yaml', target: { kind: 'Deployment' } },
      { path: 'wait-for-migration.yaml', target: { kind: 'StatefulSet' } },
    ]);
    const [program, ...args] = waiting[0].command!;
    const wait = (line: string) => {
      const script = args.at(-1)!.replace('node dist/src/cli/slipway.js doctor', `echo '${line}'`);
      return spawnSync(program, [...args.slice(0, -1), script.replace('sleep 5', 'exit 7')], { encoding: 'utf8' });
    };
    expect(wait('ok       migrations  at this version').status).toBe(0);
    const older = 'failed   migrations  The database is older than this version: run `npm run migrate`.';
    expect(wait(older)).toMatchObject({ status: 7, stdout: `${older}\n` });
  });

  verifies('kubernetes:backup', 'makes a backup each night and removes those of two weeks ago', () => {
    const folder = mkdtempSync(join(tmpdir(), 'slipway-backups-'));
    try {
      const day = 86_400_000;
      for (const [name, days] of Object.entries({
        '2026-01-01-031700': 15,
        '2026-01-10-031700': 12,
        'lost+found': 90,
      })) {
        mkdirSync(join(folder, name));
        const time = new Date(Date.now() - days * day);
        utimesSync(join(folder, name), time, time);
      }
      const [program, flag, script] = podOf('slipway-backup').containers[0].command!;
      const run = (command: string) => {
        const replaced = script.replace('node dist/src/cli/slipway.js backup', command).replaceAll('/backups', folder);
        return spawnSync(program, [flag, replaced]).status;
      };
      expect(run('false')).toBe(1);
      expect(readdirSync(folder)).toHaveLength(3);
      expect(run('mkdir')).toBe(0);
      expect(readdirSync(folder).sort()).toEqual([
        '2026-01-10-031700',
        expect.stringMatching(/^2\d{3}-\d\d-\d\d-\d{6}$/),
        'lost+found',
      ]);
    } finally {
      rmSync(folder, { recursive: true });
    }
    expect(named('PersistentVolumeClaim', 'slipway-backups')).toBeDefined();
  });

  verifies(
    'kubernetes:confined',
    'bounds each temporary volume, and lets hosts use the DNS cache of their node',
    () => {
      const temporary = pods.flatMap(({ pod }) => pod.volumes ?? []).filter(({ emptyDir }) => emptyDir);
      expect(temporary).toHaveLength(9);
      for (const { emptyDir } of temporary) expect(emptyDir?.sizeLimit).toMatch(/^\dGi$/);
      const { egress } = named('NetworkPolicy', 'slipway-host')!.spec as {
        egress?: { to: object[]; ports?: { port: number | string }[] }[];
      };
      const dns = egress?.find(({ ports }) => ports?.some(({ port }) => port === 53));
      expect(dns?.to).toContainEqual({ ipBlock: { cidr: '169.254.20.10/32' } });
    },
  );

  verifies('kubernetes:rendered', 'has autoscalers in a component, and a number of pods without it', () => {
    expect(objects.filter(({ kind }) => kind === 'HorizontalPodAutoscaler')).toEqual([]);
    for (const name of ['slipway-api', 'slipway-worker']) {
      expect(named('Deployment', name)).toMatchObject({ spec: { replicas: 2 } });
    }
    expect(parse(text('autoscaling/kustomization.yaml'))).toMatchObject({
      kind: 'Component',
      resources: ['autoscalers.yaml'],
    });
    const scaled = objectsOf('autoscaling/autoscalers.yaml').map(({ kind, metadata }) => [kind, metadata.name]);
    expect(scaled).toEqual([
      ['HorizontalPodAutoscaler', 'slipway-api'],
      ['HorizontalPodAutoscaler', 'slipway-worker'],
    ]);
  });

  verifies('kubernetes:rendered', 'opens fewer database connections than Postgres has by default', () => {
    const pool = Number(parseEnv(text('settings.env')).DATABASE_POOL_MAX);
    const workloads = objects.filter(({ kind }) => ['Deployment', 'StatefulSet'].includes(kind));
    // An upgrade starts one pod more of each Deployment, and three of 100 connections are kept for superusers.
    const most = workloads.map(
      ({ kind, spec }) => (spec as { replicas: number }).replicas + Number(kind === 'Deployment'),
    );
    expect(most).toEqual([3, 3, 2]);
    expect(most.reduce((sum, count) => sum + count) * pool).toBeLessThan(97);
  });
});
