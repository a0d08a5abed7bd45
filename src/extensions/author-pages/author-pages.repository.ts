import { Injectable } from '@nestjs/common';
import { InjectDataSource } from '@nestjs/typeorm';
import { DataSource } from 'typeorm';

/** A server without a successful release, with its newest release; null before the first one. */
export interface UnpublishedServer {
  name: string;
  slug: string;
  displayName: string;
  release: { id: string; number: number; status: string } | null;
}

@Injectable()
export class AuthorPagesRepository {
  constructor(@InjectDataSource() private readonly database: DataSource) {}

  /**
   * Returns the qualified name of the server at `/ui/s/{slug}`, even if it is hidden from the caller; null for none.
   */
  async nameAt(slug: string): Promise<string | null> {
    const [row] = await this.database.query<{ name: string }[]>(
      `SELECT concat_ws('/', n.name, nullif(s.name, '')) AS name
         FROM servers s JOIN namespaces n ON n.id = s.namespace_id WHERE s.slug = $1`,
      [slug],
    );
    return row?.name ?? null;
  }

  async namespacesOf(accountIds: string[]): Promise<string[]> {
    const rows = await this.database.query<{ name: string }[]>(
      'SELECT name FROM namespaces WHERE account_id = ANY ($1) ORDER BY name LIMIT 200',
      [accountIds],
    );
    return rows.map(({ name }) => name);
  }

  /** Returns the servers of these accounts that never had a successful release, newest first. */
  async unpublished(accountIds: string[], limit: number): Promise<UnpublishedServer[]> {
    return this.database.query(
      `SELECT concat_ws('/', n.name, nullif(s.name, '')) AS name, s.slug, s.display_name AS "displayName",
              (SELECT jsonb_build_object('id', r.id, 'number', r.number, 'status', r.status)
                 FROM releases r WHERE r.server_id = s.id ORDER BY r.number DESC LIMIT 1) AS release
         FROM servers s JOIN namespaces n ON n.id = s.namespace_id
        WHERE n.account_id = ANY ($1) AND s.current_release_id IS NULL
        ORDER BY s.created_at DESC LIMIT $2`,
      [accountIds, limit],
    );
  }
}
