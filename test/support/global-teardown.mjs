/** The results are written long before. */
const EXIT_MS = 10_000;

/** Ends the server that global-setup.mjs started, and the process when a failed test left something that holds it. */
export default async function globalTeardown() {
  const exit = () => {
    process.stderr.write('The tests are over, but something they left keeps the process alive: ending it.\n');
    process.exit();
  };
  setTimeout(exit, EXIT_MS).unref();
  if (!globalThis.slipwayTestPostgres) return;
  await globalThis.slipwayTestPostgres.stop();
  delete globalThis.slipwayTestPostgres;
  delete process.env.TEST_DATABASE_URL;
}
