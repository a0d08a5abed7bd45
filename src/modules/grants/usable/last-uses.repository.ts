import { Injectable } from '@nestjs/common';
import { InjectDataSource } from '@nestjs/typeorm';
import { DataSource } from 'typeorm';
import type { CallOrigin } from '../../../mcp/protocol/channel.js';
import { toStorableText } from '../../../platform/database/storable.js';
import type { CalledTarget } from '../../logs/call.events.js';

export interface Use {
  target: CalledTarget;
  by: CallOrigin;
  at: Date;
}

@Injectable()
export class LastUsesRepository {
  constructor(@InjectDataSource() private readonly database: DataSource) {}

  /** Stores uses, except where a newer one is stored, or the account or target no longer exists. */
  async save(uses: Use[]): Promise<void> {
    for (const kind of ['connection', 'server'] as const) {
      const of = uses.filter(({ target }) => target.kind === kind);
      if (of.length === 0) continue;
      await this.database.query(
        `INSERT INTO last_uses AS l (account_id, target_id, ${kind}_id, at, kind, credential_id, client)
         SELECT u.account_id, t.id, t.id, u.at, u.kind, u.credential_id, u.client
           FROM unnest($1::uuid[], $2::uuid[], $3::timestamptz[], $4::text[], $5::uuid[], $6::text[])
                  AS u(account_id, target_id, at, kind, credential_id, client)
           JOIN accounts a ON a.id = u.account_id JOIN ${kind}s t ON t.id = u.target_id
          ORDER BY t.id, u.account_id FOR KEY SHARE OF t
         ON CONFLICT (account_id, target_id) DO UPDATE
            SET at = excluded.at, kind = excluded.kind, credential_id = excluded.credential_id, client = excluded.client
          WHERE l.at < excluded.at`,
        [
          of.map(({ by }) => by.account),
          of.map(({ target }) => target.id),
          of.map(({ at }) => at),
          of.map(({ by }) => by.kind),
          of.map(({ by }) => by.credential),
          of.map(({ by }) => by.client && toStorableText(by.client)),
        ],
      );
    }
  }
}
