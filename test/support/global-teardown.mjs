/** Ends the server that global-setup.mjs started; in watch mode the next run starts its own. */
export default async function globalTeardown() {
  if (!globalThis.slipwayTestPostgres) return;
  await globalThis.slipwayTestPostgres.stop();
  delete globalThis.slipwayTestPostgres;
  delete process.env.TEST_DATABASE_URL;
}
