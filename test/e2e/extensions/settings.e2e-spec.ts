import { mkdtempSync, writeFileSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { Injectable, Module } from '@nestjs/common';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { z } from 'zod';
import { defineModule, InjectSettings } from '../../../src/extension.js';
import { startApp, testApp } from '../../support/app.js';
import { cleanUpPrograms, dataFolder, runProgram } from '../../support/program.js';

const noteSettings = z.object({
  BOOK_NOTES_MAX: z.coerce.number().int().default(5),
  BOOK_NOTES_TOKEN: z.string().min(8),
  BOOK_NOTES_STYLE: z.enum(['plain', 'rich']).optional(),
});

@Injectable()
class Notes {
  constructor(@InjectSettings(noteSettings) readonly settings: z.infer<typeof noteSettings>) {}
}

@Module({ providers: [Notes] })
class NotesModule {}

const notes = defineModule({ name: 'book-notes', module: () => NotesModule, settings: noteSettings });
const secrets = mkdtempSync(path.join(tmpdir(), 'slipway-secrets-'));
const token = path.join(secrets, 'token');
writeFileSync(token, 'long enough\n');
afterAll(() => rm(secrets, { recursive: true }));
const app = testApp({ BOOK_NOTES_MAX: '7', BOOK_NOTES_TOKEN_FILE: token, BOOK_NOTES_STYLE: '' }, {}, [notes]);

describe('settings of a module', () => {
  it('are read from the environment or from files, and injected with their types', () => {
    const { settings: read } = app.get(Notes);
    const max: number = read.BOOK_NOTES_MAX;
    expect(max).toBe(7);
    expect(read).toEqual({ BOOK_NOTES_MAX: 7, BOOK_NOTES_TOKEN: 'long enough' });
  });

  it('fail the start with all problems, without the values', async () => {
    const other = defineModule({
      name: 'log',
      module: () => NotesModule,
      settings: z.object({ LOG_LEVEL: z.string(), NOTE: z.string().optional() }),
    });
    const wrong = { BOOK_NOTES_MAX: 'many', BOOK_NOTES_STYLE: 'secret' };
    const problemsOf = async (values: Record<string, string>) =>
      String(await startApp(values, {}, [notes, other]).catch((error: Error) => error.message)).split('\n');
    const [missing] = await problemsOf({ BOOK_NOTES_TOKEN_FILE: path.join(secrets, 'none') });
    expect(missing).toBe(
      'BOOK_NOTES_TOKEN must be in the file that BOOK_NOTES_TOKEN_FILE names, which cannot be read (ENOENT).',
    );
    expect(await problemsOf(wrong)).toEqual([
      'BOOK_NOTES_MAX is not valid: expected number, received NaN.',
      'BOOK_NOTES_TOKEN must be set: expected string.',
      'BOOK_NOTES_STYLE is not valid: Invalid option: expected one of "plain"|"rich".',
      'LOG_LEVEL must begin with LOG_, and must not be a setting of Slipway: the module is log.',
      'NOTE must begin with LOG_, and must not be a setting of Slipway: the module is log.',
    ]);
  });
});

describe('slipway doctor', () => {
  let folder: string;

  beforeAll(async () => {
    folder = await mkdtemp(path.join(tmpdir(), 'slipway-module-'));
    await writeFile(path.join(folder, 'package.json'), '{"name":"notes","type":"module","main":"main.js"}');
    await writeFile(
      path.join(folder, 'main.js'),
      `import { z } from 'zod';
       const settings = z.object({ NOTES_MAX: z.coerce.number().default(5), NOTES_TOKEN: z.string() });
       export default { name: 'notes', module: () => class NotesModule {}, settings };`,
    );
  });

  afterAll(async () => {
    await cleanUpPrograms();
    await rm(folder, { recursive: true, force: true });
  });

  const doctor = async (more: Record<string, string>) => {
    const variables = { DATA_DIR: await dataFolder(), SLIPWAY_MODULES: folder, ROLES: 'api', ...more };
    const program = runProgram('cli/slipway.js', variables, { args: ['doctor'] });
    const code = await program.ended;
    return { code, lines: program.output().split('\n') };
  };

  it('names the settings of modules, and unknown variables', async () => {
    const secretFile = path.join(secrets, 'secret');
    writeFileSync(secretFile, 'a secret');
    const { code, lines } = await doctor({ NOTES_TOKEN_FILE: secretFile, NOTES_MXA: '3' });
    expect(lines).toContain(
      'warning  modules     NOTES_MXA is not a setting and changes nothing: use NOTES_MAX or NOTES_TOKEN, or remove it.',
    );
    expect(lines).toContain('ok       modules     notes: NOTES_MAX by default, NOTES_TOKEN is set');
    expect([code, lines.join('\n').includes('a secret')]).toEqual([0, false]);
  });

  it('fails for those that are not valid', async () => {
    const { code, lines } = await doctor({ NOTES_MAX: 'many' });
    expect(lines).toContain('failed   modules     NOTES_MAX is not valid: expected number, received NaN.');
    expect(lines).toContain('failed   modules     NOTES_TOKEN must be set: expected string.');
    expect(code).toBe(1);
  });
});
