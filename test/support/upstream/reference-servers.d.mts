/** A reference server of test/vendor. */
export type ReferenceName = 'conformance-server' | 'typescript-sdk-server';

/** A running one. */
export interface ReferenceServer {
  /** Its MCP endpoint. */
  url: string;
  port: number;
  /** Ends it by SIGKILL and waits for its end. */
  kill(): Promise<void>;
}

export const referenceServers: readonly ReferenceName[];

/** Starts a server on `port`, or on a free one. Resolves when it listens. */
export function startReferenceServer(name: ReferenceName, port?: number): Promise<ReferenceServer>;
