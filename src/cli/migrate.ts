import { loadEnv } from '../config/env.js';
import { startInfrastructure } from '../infrastructure.js';

/** `npm run migrate`: brings the database to this version, for services that start with `MIGRATE=off`. */
async function run(): Promise<void> {
  const { firstKey, stop } = await startInfrastructure(loadEnv().with({ migrate: 'auto' }));
  await stop();
  process.stdout.write('The database is at this version.\n');
  if (firstKey !== null) process.stdout.write(`Operator API key, shown this once:\n${firstKey}\n`);
}

run().then(
  () => process.exit(0),
  (error: unknown) => {
    process.stderr.write(`The database was not migrated: ${(error as Error).message}\n`);
    process.exit(1);
  },
);
