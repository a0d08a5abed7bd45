/** Statements about secrets of servers, which `slipway doctor` also sends. */

/**
 * Returns public servers with secrets whose owners have not confirmed that every caller uses them.
 *
 * @returns at most 20 qualified names
 */
export async function publicWithSecrets(
  database: { query<T>(sql: string, values?: unknown[]): Promise<T> },
  serverId: string | null = null,
): Promise<string[]> {
  const rows = await database.query<{ name: string }[]>(
    `SELECT concat_ws('/', n.name, nullif(s.name, '')) AS name FROM servers s JOIN namespaces n ON n.id = s.namespace_id
      WHERE s.visibility = 'public' AND NOT s.confirm_secrets AND ($1::uuid IS NULL OR s.id = $1)
        AND EXISTS (SELECT FROM server_secrets WHERE server_id = s.id) ORDER BY 1 LIMIT 20`,
    [serverId],
  );
  return rows.map(({ name }) => name);
}
