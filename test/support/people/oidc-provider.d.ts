/** The parts of `oidc-provider` that tests use; the package has no types of its own. */
declare module 'oidc-provider' {
  import type { IncomingMessage, ServerResponse } from 'node:http';

  interface Context {
    path: string;
    body: unknown;
  }

  interface Interaction {
    params: Record<string, string | undefined>;
    grantId?: string;
    session?: { accountId?: string };
  }

  interface Grant {
    addOIDCScope(scope: string): void;
    addResourceScope(resource: string, scope: string): void;
    save(): Promise<string>;
  }

  interface StoredToken {
    accountId: string;
    aud?: string | string[];
    scope?: string;
    isExpired: boolean;
  }

  interface StoredClient {
    clientId: string;
  }

  export default class Provider {
    constructor(issuer: string, configuration: object);
    AccessToken: { find(token: string): Promise<StoredToken | undefined> };
    Grant: new (fields: { accountId: string; clientId: string }) => Grant;
    Client: { find(id: string): Promise<StoredClient | undefined>; adapter: { destroy(id: string): Promise<void> } };
    callback(): (request: IncomingMessage, response: ServerResponse) => void;
    use(middleware: (context: Context, next: () => Promise<void>) => Promise<void>): void;
    on(event: string, listener: (...args: unknown[]) => void): void;
    interactionDetails(request: IncomingMessage, response: ServerResponse): Promise<Interaction>;
    interactionResult(request: IncomingMessage, response: ServerResponse, result: object): Promise<string>;
  }
}
