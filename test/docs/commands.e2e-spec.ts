/**
 * Carries out the documentation as a newcomer would: for each page a new service on an empty data folder, then every
 * `sh test` block in an empty folder, then a real MCP client for every client configuration.
 */
import { afterAll, describe, it } from '@jest/globals';
import { generateApiKey } from '../../src/modules/auth/api-key.js';
import { clientConfigsOf, toolsThrough } from '../support/documentation/client-configs.js';
import { commandsOf, openPageRun } from '../support/documentation/doc-commands.js';
import { blocksOf, docPages, readPage, serviceSettings } from '../support/documentation/doc-pages.js';
import { cleanUpPrograms, dataFolder, runProgram } from '../support/program.js';
import { freePort } from '../support/upstream/upstream-net.js';

const PAGE_MS_MAX = 900_000;

const pages = await Promise.all((await docPages()).map(async (page) => ({ page, text: await readPage(page) })));
const executable = pages
  .map(({ page, text }) => ({ page, text, blocks: blocksOf(page, text) }))
  .map((each) => ({ ...each, commands: commandsOf(each.blocks), configs: clientConfigsOf(each.blocks) }))
  .filter(({ commands, configs }) => commands.length + configs.length > 0);

afterAll(cleanUpPrograms);

describe('the commands and client configurations of', () => {
  it.each(executable.map(({ page }) => page))(
    '%s work as written',
    async (page) => {
      const found = executable.find((each) => each.page === page);
      if (!found) throw new Error(`${page} has no commands`);
      const { text, commands, configs } = found;
      const key = generateApiKey();
      const settings = { DATA_DIR: await dataFolder(), BOOTSTRAP_API_KEY: key, ...serviceSettings(text) };
      const program = runProgram('main.js', settings);
      const url = await program.url();
      const run = await openPageRun({ url, key }, await freePort());
      try {
        await run.run(commands);
        for (const config of configs) {
          const tools = await toolsThrough(config, run).catch((error: unknown) => {
            throw new Error(`${page}:${config.block.line}: ${(error as Error).message}`, { cause: error });
          });
          if (tools.length === 0) throw new Error(`${page}:${config.block.line}: the client lists no tools`);
        }
      } finally {
        await run.close();
        program.kill('SIGTERM');
        await program.ended;
      }
    },
    PAGE_MS_MAX,
  );
});
