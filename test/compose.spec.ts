import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { describe, expect, it } from '@jest/globals';
import { parse } from 'yaml';
import { loadEnv, settingDocs } from '../src/config/env.js';
import { verifies } from './support/verifies.js';

interface Service {
  command: string[];
  environment: Record<string, string>;
  ports?: string[];
  cap_add?: string[];
  env_file?: object[];
  mem_limit?: string;
}

const compose = parse(readFileSync('docker/compose.yml', 'utf8'), { merge: true }) as {
  services: Record<string, Service>;
};
const { slipway, proxy } = compose.services;

/** Output of a command of the compose file with parts of it replaced. */
function run({ command }: Service, replaced: [string, string][], env: NodeJS.ProcessEnv = {}): string {
  const [program, ...args] = command.map((part) => part.replaceAll('$$', '$'));
  const script = replaced.reduce(
    (text, [from, to]) => {
      expect(text).toContain(from);
      return text.replace(from, to);
    },
    args.at(-1) ?? '',
  );
  return execFileSync(program, [...args.slice(0, -1), script], {
    env: { PATH: process.env.PATH, ...env },
    encoding: 'utf8',
  });
}

describe('docker/compose.yml', () => {
  verifies(
    'compose:scale',
    'runs several processes: each has its own ADVERTISE_URL, and none a port of the host',
    () => {
      expect(slipway).not.toHaveProperty('ports');
      expect(slipway).not.toHaveProperty('container_name');
      const advertised = (HOSTNAME: string) =>
        run(slipway, [['exec node --max-semi-space-size=16 dist/src/main.js', 'printenv ADVERTISE_URL']], { HOSTNAME });
      expect([advertised('3f2a'), advertised('77bc')]).toEqual(['http://3f2a:3000\n', 'http://77bc:3000\n']);
    },
  );

  verifies('compose:scale', 'has a proxy with the rules of docker/nginx.conf, for all addresses of the service', () => {
    const site = run(proxy, [
      ['/etc/slipway/nginx.conf', 'docker/nginx.conf'],
      ['> /etc/nginx/conf.d/default.conf', ''],
      [" && exec nginx -g 'daemon off;'", ''],
    ]);
    const lines = (text: string) => text.split('\n').map((line) => line.trim());
    const sample = lines(readFileSync('docker/nginx.conf', 'utf8'));
    const own = lines(site).filter((line) => !sample.includes(line));
    expect(own).toEqual([
      'zone slipway 64k; resolver 127.0.0.11 valid=5s; server slipway:3000 resolve max_fails=0;',
      'listen 3000;',
    ]);
    const left = sample.filter((line) => !lines(site).includes(line));
    expect(left.map((line) => line.split(' ')[0])).toEqual([
      'server',
      'listen',
      'ssl_certificate',
      'ssl_certificate_key',
    ]);
    expect(proxy.ports).toEqual(['127.0.0.1:3000:3000']);
  });

  verifies('compose:confined', 'bounds memory, rights, files and logs of each container', () => {
    for (const service of Object.values(compose.services)) {
      expect(service).toMatchObject({
        cap_drop: ['ALL'],
        read_only: true,
        security_opt: ['no-new-privileges:true'],
        mem_limit: expect.stringMatching(/^\d+[gm]$/),
        logging: { driver: 'json-file', options: { 'max-size': '50m', 'max-file': '5' } },
        restart: 'unless-stopped',
      });
    }
    const added = Object.entries(compose.services).flatMap(([name, { cap_add }]) =>
      cap_add ? [[name, ...cap_add]] : [],
    );
    expect(added).toEqual([['proxy', 'CHOWN', 'SETGID', 'SETUID']]);
    const { postgres, redis } = compose.services;
    expect([postgres, redis]).toMatchObject([{ user: 'postgres' }, { user: 'redis' }]);
    // Programs that run have files below /tmp, sessions and uploads below /data.
    expect(slipway).toMatchObject({ volumes: ['data:/data', '/tmp'], env_file: [{ path: '.env', required: false }] });
  });

  it('trusts the proxy in either of the two pools of networks that Docker has', () => {
    expect(slipway.environment.TRUST_PROXY).toBe('${TRUST_PROXY:-172.16.0.0/12,192.168.0.0/16}');
  });

  it('builds an image whose labels name its version, commit, source and base', () => {
    const file = readFileSync('docker/Dockerfile', 'utf8');
    const { version } = JSON.parse(readFileSync('package.json', 'utf8')) as { version: string };
    const labels = Object.fromEntries(
      [...file.matchAll(/image\.([\w.]+)=(\S+)/g)].map(([, name, value]) => [name, value]),
    );
    const given = { revision: '$COMMIT', created: '$CREATED', source: '$SOURCE', version: '$VERSION' };
    expect(labels).toMatchObject({ ...given, licenses: 'UNLICENSED', 'base.name': 'docker.io/library/$NODE_IMAGE' });
    expect(file).toContain(`ARG VERSION=${version}\n`);
    // Every stage is made of the one base that the argument names, and the last one, the default, has no database.
    expect([...file.matchAll(/^FROM (\S+) AS (\w+)/gm)].map(([, base, stage]) => `${stage} of ${base}`)).toEqual([
      ...['build', 'packages', 'application'].map((stage) => `${stage} of \${NODE_IMAGE}`),
      ...['single of application', 'runtime of application'],
    ]);
  });

  it('has an example of docker/.env with what a person must choose, each value with the command that makes it', () => {
    const example = readFileSync('docker/.env.example', 'utf8');
    const required = [...example.matchAll(/^# {3}(.+)\n([A-Z_]+)=$/gm)].map(([, command, name]) => [name, command]);
    const read = readFileSync('docker/compose.yml', 'utf8');
    // Postgres has a default, which is no password for others in the network of these containers.
    const wanted = [...read.matchAll(/\$\{([A-Z_]+):\?/g)].map(([, name]) => name);
    expect(required.map(([name]) => name)).toEqual([...wanted, 'BOOTSTRAP_API_KEY', 'POSTGRES_PASSWORD']);
    const made = Object.fromEntries(
      required.map(([name, command]) => [name, execFileSync('sh', ['-c', command], { encoding: 'utf8' }).trim()]),
    );
    const { POSTGRES_PASSWORD, ...values } = made;
    const DATABASE_URL = slipway.environment.DATABASE_URL.replace(/\$\{.*?\}/, POSTGRES_PASSWORD);
    const env = loadEnv({ ...values, DATABASE_URL });
    expect(env.encryptionKeys).toHaveLength(1);
    expect([env.bootstrapApiKey, new URL(env.databaseUrl ?? '').password]).toEqual([
      made.BOOTSTRAP_API_KEY,
      POSTGRES_PASSWORD,
    ]);
    const known = [...settingDocs().map(({ name }) => name), 'POSTGRES_PASSWORD'];
    const named = [...example.matchAll(/^(?:# )?([A-Z_]+)=/gm)].map(([, name]) => name);
    expect(named.filter((name) => !known.includes(name) || !read.includes(`\${${name}:`))).toEqual([]);
    expect(readFileSync('.gitignore', 'utf8')).toContain('docker/.env\n');
  });

  it('sets no setting that does not exist', () => {
    const known = settingDocs().map(({ name }) => name);
    expect(Object.keys(slipway.environment).filter((name) => !known.includes(name))).toEqual([]);
  });
});
