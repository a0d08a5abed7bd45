import { describe, expect } from '@jest/globals';
import { mkdir, mkdtemp, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { ZipFile } from 'yazl';
import { verifies } from '../../../test/support/verifies.js';
import { commandFor, unpackBundle } from './unpack-bundle.js';

async function packed(files: Record<string, [content: string, mode: number]>): Promise<string> {
  const zip = new ZipFile();
  for (const [path, [content, mode]] of Object.entries(files)) {
    // The kind of file and its permissions are the upper half of the external attributes; archivers of Windows write 0.
    zip.addBuffer(Buffer.from(content), path, { mode: mode === 0 ? 0o100000 : 0o100000 | mode });
  }
  zip.end();
  const folder = await mkdtemp(join(tmpdir(), 'slipway-spec-'));
  const file = join(folder, 'bundle.mcpb');
  await writeFile(file, await buffer(zip.outputStream));
  return file;
}

describe('an unpacked bundle', () => {
  verifies('bundle:run', 'has programs that run, on whatever system it was packed', async () => {
    const manifest = (server: object) => JSON.stringify({ server });
    const config = { command: '${__dirname}/bin/tool', args: [] };
    const file = await packed({
      'manifest.json': [manifest({ type: 'binary', entry_point: 'server\\start', mcp_config: config }), 0],
      'server/start': ['x', 0o644],
      'bin/tool': ['x', 0],
      'script.sh': ['#!/bin/sh', 0],
      native: ['\x7fELF', 0],
      text: ['plain', 0],
      'marked.sh': ['#!/bin/sh', 0o644],
      own: ['x', 0o755],
    });
    const folder = join(dirname(file), 'out');
    await mkdir(folder);
    expect(await unpackBundle(file, folder)).toMatchObject(config);
    const isProgram = async (path: string) => ((await stat(join(folder, path))).mode & 0o111) !== 0;
    const files = ['server/start', 'bin/tool', 'script.sh', 'native', 'own', 'text', 'marked.sh'];
    expect(await Promise.all(files.map(isProgram))).toEqual([true, true, true, true, true, false, false]);
    const uv = await packed({ 'manifest.json': [manifest({ type: 'uv', entry_point: 'src/main.py' }), 0] });
    const empty = join(dirname(uv), 'out');
    await mkdir(empty);
    const args = ['run', '--directory', '${__dirname}', 'src/main.py'];
    expect(await unpackBundle(uv, empty)).toMatchObject({ command: 'uv', args });
    for (const path of [file, uv]) await rm(dirname(path), { recursive: true });
  });
});

describe('the command of a session', () => {
  verifies('bundle:run', 'finds the folders of its user in defaults', () => {
    const manifest = {
      command: 'node',
      args: ['${user_config.folders}', '${HOME}', '${OTHER}'],
      env: {},
      userConfig: {
        folders: { type: 'directory', multiple: true, default: ['${HOME}/x', '${DESKTOP}', '${DOWNLOADS}'] },
      },
    };
    const at = { folder: '/bundle', home: '/tmp' };
    const args = (query: string) => commandFor(manifest, at, new URLSearchParams(query), {}).args;
    expect(args('')).toEqual(['/tmp/x', '/tmp/Desktop', '/tmp/Downloads', '/tmp', '${OTHER}']);
    expect(args('folders=${HOME}')[0]).toBe('${HOME}');
  });

  verifies('bundle:run', 'has the arguments and the environment that the manifest says', () => {
    const at = { folder: '/bundle', home: '/tmp' };
    type Row = [option: object, query: string, secrets: Record<string, string>, args: string[], env: string];
    const rows: Row[] = [
      // An optional value that is left out is an empty argument.
      [{}, '', {}, [''], ''],
      [{ default: '' }, '', {}, [''], ''],
      [{ default: null }, 'x=', {}, [''], ''],
      [{ default: '' }, 'x=a', {}, ['a'], 'a'],
      [{ default: 0, type: 'number' }, '', {}, ['0'], '0'],
      [{ default: false, type: 'boolean' }, 'x=false', {}, ['false'], 'false'],
      [{ multiple: true }, '', {}, [], ''],
      [{ multiple: true, default: [] }, '', {}, [], ''],
      // Places in a default, also where the caller's configuration repeats it.
      [{ default: '${HOME}/a' }, 'x=${HOME}/a', {}, ['/tmp/a'], '/tmp/a'],
      [{ default: '${DOCUMENTS}' }, '', {}, ['/tmp/Documents'], '/tmp/Documents'],
      [{ default: '${__dirname}${/}a' }, 'x=${__dirname}${/}a', {}, ['/bundle/a'], '/bundle/a'],
      [{ default: '${HOME}' }, 'x=${DESKTOP}', {}, ['${DESKTOP}'], '${DESKTOP}'],
      [
        { multiple: true, default: ['${HOME}', '${DOWNLOADS}'] },
        'x=["${HOME}","${DOWNLOADS}"]',
        {},
        ['/tmp', '/tmp/Downloads'],
        '/tmp,/tmp/Downloads',
      ],
      // `multiple` decides what is a list.
      [{}, 'x=["a","b"]', {}, ['["a","b"]'], '["a","b"]'],
      [{}, 'x=[a]', {}, ['[a]'], '[a]'],
      [{}, 'x=a&x=b', {}, ['a'], 'a'],
      [{ multiple: false }, '', { x: '[1,2]' }, ['[1,2]'], '[1,2]'],
      [{ multiple: true }, 'x=["a","b"]', {}, ['a', 'b'], 'a,b'],
      [{ multiple: true }, 'x=a&x=b', {}, ['a', 'b'], 'a,b'],
      [{ multiple: true }, 'x=[1,true,""]', {}, ['1', 'true', ''], '1,true,'],
      [{ multiple: true, default: ['c'] }, 'x=[]', {}, [], ''],
      [{ multiple: true }, '', { x: '["a","b"]' }, ['a', 'b'], 'a,b'],
    ];
    for (const [option, query, secrets, args, value] of rows) {
      const manifest = {
        command: 'node',
        args: ['--x', '${user_config.x}', '--last'],
        env: { VALUE: '${user_config.x}' },
        userConfig: { x: { type: 'string', ...option } },
      };
      const params = new URLSearchParams(query.replaceAll('+', '%2B'));
      const command = commandFor(manifest, at, params, secrets);
      expect([option, query, command.args, command.env.VALUE]).toEqual([
        option,
        query,
        ['--x', ...args, '--last'],
        value,
      ]);
    }
    const required = { command: 'node', args: [], env: {}, userConfig: { x: { multiple: true, required: true } } };
    expect(() => commandFor(required, at, new URLSearchParams('x=[]'), {})).toThrow(/The server wants "x"/);
  });

  verifies('bundle:run', 'takes the value of the caller, else the secret of that name, else the default', () => {
    const manifest = {
      command: 'node',
      args: ['${user_config.region}'],
      env: { REGION: '${user_config.region}' },
      userConfig: { region: { type: 'string', default: 'by default' } },
    };
    const region = (query: string, secrets: Record<string, string>) => {
      const { args, env } = commandFor(
        manifest,
        { folder: '/bundle', home: '/tmp' },
        new URLSearchParams(query),
        secrets,
      );
      expect(env.REGION).toBe(args[0]);
      return args[0];
    };
    const secrets = { region: 'of the secret' };
    expect(region('region=of+the+caller', secrets)).toBe('of the caller');
    expect(region('region=', secrets)).toBe('of the secret');
    expect(region('', {})).toBe('by default');
  });
});
