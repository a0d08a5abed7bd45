/** The kinds of targets. */
export const targetKinds = ['url', 'server', 'source', 'uplink'] as const;
export type TargetKind = (typeof targetKinds)[number];

/** A connection and its owner. */
export interface ConnectionRef {
  id: string;
  /** Counts the changes that may change the upstream. */
  revision: number;
  namespaceId: string;
  /** The account that owns the namespace. */
  accountId: string;
  namespace: string;
  /** Unique in its namespace, unlike `id`, which is the row's. */
  connectionId: string;
  /** Setup links of this epoch are valid. */
  setupEpoch: number;
  /** The end of the recording of its tool calls; null while they are not recorded. */
  recordingUntil: Date | null;
}

/** An authorization that granted more scopes. */
export interface StepUp {
  /** ISO 8601. */
  at: string;
  /** As the challenge spelled them. */
  scopes: string;
}

/** The target of a connection, with the values that calls send. Header names are lower-case. */
export type ConnectionTarget = ConnectionRef &
  (
    | { kind: 'url'; url: string; headers: Record<string, string> }
    | {
        kind: 'server';
        serverId: string | null;
        serverName: string;
        headers: Record<string, string>;
        query: QueryValues;
      }
    | { kind: 'mock'; serverId: string | null; serverName: string; scenario: string | null }
    | { kind: 'source'; isStateful: boolean }
    | { kind: 'uplink' }
  );

/** The target of a connection of one kind. */
export type TargetOf<Kind extends ConnectionTarget['kind']> = Extract<ConnectionTarget, { kind: Kind }>;

/** Query parameters in their order; a name may occur twice. */
export type QueryValues = [name: string, value: string][];

/** A mock, as the row stores it. */
export interface StoredMock {
  scenario?: string;
}

/** A server module, as the row stores it (Spec 4.3). */
export interface StoredSource {
  kind: 'module';
  entrypoint: string;
  sourceFiles: { path: string; contents: string }[];
}
