import { expect } from '@jest/globals';
import type { Response } from 'supertest';
import { uniqueName, type TestApp } from '../app.js';

/** Values of a seeded connection. The others are generated. */
export interface ConnectionSeed {
  connectionId?: string;
  name?: string;
  mcpUrl?: string;
  metadata?: object;
}

/** Writes connections past the API, in this order, without contacting any upstream. Returns their ids. */
export async function seedConnections(app: TestApp, namespace: string, seeds: ConnectionSeed[]): Promise<string[]> {
  const rows = seeds.map(({ connectionId = uniqueName('conn'), name, mcpUrl, metadata }) => ({
    id: connectionId,
    name: name ?? connectionId,
    url: mcpUrl ?? 'http://seeded.invalid/mcp',
    metadata: metadata ?? {},
  }));
  await app.database.query(
    `INSERT INTO connections (namespace_id, connection_id, name, mcp_url, metadata, status_state, status_reason)
     SELECT n.id, row ->> 'id', row ->> 'name', row ->> 'url', row -> 'metadata', 'connected', 'ok'
       FROM namespaces n, jsonb_array_elements($2::jsonb) WITH ORDINALITY AS given(row, place)
      WHERE n.name = $1 ORDER BY place`,
    [namespace, JSON.stringify(rows)],
  );
  return rows.map(({ id }) => id);
}

/** Expects equal answers: the same status, body and headers, except request id, date and what is left of a limit. */
export function expectAlike(...answers: Response[]): void {
  const [first, ...others] = answers.map(({ status, text, headers }) => {
    const { date, ratelimit, 'x-request-id': id, ...rest } = headers as Record<string, string>;
    return { status, text, headers: rest };
  });
  for (const answer of others) expect(answer).toEqual(first);
}

/** The body of Spec 7 for whatever is missing or foreign. */
export const notFound = expect.objectContaining({ error: 'not_found', message: 'Resource not found' });
