/**
 * A setting is sent by `SET` once the session is open. As a startup parameter it would be overridden by `options` of
 * DATABASE_URL, and rejected by PgBouncer. These settings override those of the URL, the role and the database.
 *
 * A pool removes its listener for errors while a client is borrowed, and if the server then closes a new session, the
 * emitted error would crash the process, so each client has a listener of its own. The current or next query reports
 * the same error.
 */
import { Client, type ClientBase } from 'pg';

/** Settings of a session; their values are SQL. */
export type SessionSettings = Record<string, string | number>;

/** Settings without time limits, whatever those of the role and the database: for migrations, copies and commands. */
export const UNLIMITED: SessionSettings = {
  statement_timeout: 0,
  lock_timeout: 0,
  idle_in_transaction_session_timeout: 0,
};

/** Settings of migrations: everything that needs a table waits behind the lock that a migration waits for. */
export const MIGRATING: SessionSettings = { ...UNLIMITED, lock_timeout: 3_000 };

export const COPY_NAME = 'slipway-copy';

/** Time limit of a new connection, and then of its settings: the network can fail between the two. */
export const CONNECT_MS_MAX = 5_000;

const reportedByQueries = () => undefined;

/** Prepares a session; a pool awaits this in `onConnect`. @throws the error of Postgres, or after 5 s */
export async function prepareSession(client: ClientBase, settings: SessionSettings): Promise<void> {
  client.on('error', reportedByQueries);
  const text = Object.entries(settings).map(([name, value]) => `SET ${name} = ${value}`);
  const query = { text: text.join('; '), query_timeout: CONNECT_MS_MAX };
  await client.query(query);
}

/** Opens a client, which the caller closes. @throws the error of Postgres, or after 5 s */
export async function openClient(databaseUrl: string, name: string, settings: SessionSettings): Promise<Client> {
  const client = new Client({
    connectionString: databaseUrl,
    application_name: name,
    connectionTimeoutMillis: CONNECT_MS_MAX,
    keepAlive: true,
  });
  client.on('error', reportedByQueries);
  try {
    await client.connect();
    await prepareSession(client, settings);
    return client;
  } catch (error) {
    await client.end();
    throw error;
  }
}
