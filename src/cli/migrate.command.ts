import { withDatabase } from './with-database.js';

export async function run(): Promise<number> {
  const { firstKey } = await withDatabase({ migrate: 'auto' }, (database) => Promise.resolve(database));
  process.stdout.write('The database is at this version.\n');
  if (firstKey !== null) process.stdout.write(`Operator API key, shown this once:\n${firstKey}\n`);
  return 0;
}
