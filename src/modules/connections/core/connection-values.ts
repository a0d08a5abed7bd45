import { Injectable } from '@nestjs/common';
import { Vault } from '../../../platform/vault/vault.js';
import type { QueryValues } from './connection.entity.js';

/** Encrypts headers and query values for the row of a connection. The API never returns them. */
@Injectable()
export class ConnectionValues {
  constructor(private readonly vault: Vault) {}

  /** Lower-cases the names. Null without headers. */
  sealHeaders(id: string, headers: Record<string, string> | undefined): string | null {
    if (headers === undefined || Object.keys(headers).length === 0) return null;
    const lowerCase = Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]);
    return this.vault.seal(JSON.stringify(Object.fromEntries(lowerCase)), id);
  }

  openHeaders(id: string, sealed: string | null): Record<string, string> {
    return sealed === null ? {} : (JSON.parse(this.vault.open(sealed, id)) as Record<string, string>);
  }

  sealQuery(id: string, query: QueryValues): string | null {
    return query.length === 0 ? null : this.vault.seal(JSON.stringify(query), id);
  }

  openQuery(id: string, sealed: string | null): QueryValues {
    return sealed === null ? [] : (JSON.parse(this.vault.open(sealed, id)) as QueryValues);
  }
}
