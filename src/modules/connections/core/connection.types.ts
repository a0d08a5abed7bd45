/** Every kind of target a connection may have. */
export const targetKinds = ['url', 'server', 'source', 'uplink'] as const;
export type TargetKind = (typeof targetKinds)[number];

/** Which connection, and for whom it calls. */
export interface ConnectionRef {
  id: string;
  /** Grows with every change that may lead elsewhere. */
  revision: number;
  namespaceId: string;
  /** Whose namespace it is in. */
  accountId: string;
  namespace: string;
  /** The id people know it by. */
  connectionId: string;
  /** The setup links of this epoch work. */
  setupEpoch: number;
  /** Its tool calls are recorded until then; null while they are not. */
  recordingUntil: Date | null;
}

/** An authorization that was given for more scopes. */
export interface StepUp {
  /** ISO 8601. */
  at: string;
  /** The scopes that were asked for, as the challenge spelled them. */
  scopes: string;
}

/** What a connection leads to, with all that calling it needs. Headers are lower-case and never leave the service. */
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

/** Values in the order they were given; a name may occur twice. */
export type QueryValues = [name: string, value: string][];

/** A mock as the row keeps it. */
export interface StoredMock {
  scenario?: string;
}

/** A server module as it was given (Spec 4.3). */
export interface StoredSource {
  kind: 'module';
  entrypoint: string;
  sourceFiles: { path: string; contents: string }[];
}

/** What a connection asks its user for, by where it is sent; `missing` names what keeps it from working. */
export interface StatusInputs {
  http: { headers?: Record<string, InputField>; query?: Record<string, InputField> };
  missing: { headers: string[]; query: string[] };
}

export interface InputField {
  label: string;
  description?: string;
  required?: boolean;
}
