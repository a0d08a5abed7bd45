/** Types of workerd used by the wrapper beyond the web standards. */

/** Extends a request beyond its answer. */
export interface ExecutionContext {
  waitUntil(promise: Promise<unknown>): void;
}

/** Storage of one Durable Object, on disk. */
export interface ObjectStorage {
  get<T>(key: string): Promise<T | undefined>;
  put(key: string, value: unknown): Promise<void>;
  delete(key: string): Promise<boolean>;
  deleteAll(): Promise<void>;
  list(options: { prefix: string; limit: number }): Promise<Map<string, unknown>>;
  getAlarm(): Promise<number | null>;
  setAlarm(at: number): Promise<void>;
  deleteAlarm(): Promise<void>;
}

export interface ObjectState {
  readonly id: { toString(): string };
  readonly storage: ObjectStorage;
  waitUntil(promise: Promise<unknown>): void;
}

export interface ObjectNamespace {
  newUniqueId(): ObjectId;
  /** Deterministic id of a name; unguessable without the name. */
  idFromName(name: string): ObjectId;
  /** @throws TypeError for an id that this namespace did not create */
  idFromString(text: string): ObjectId;
  get(id: ObjectId): { fetch(request: Request): Promise<Response> };
}

export interface ObjectId {
  toString(): string;
}

/** Bindings of a program: its secrets, and the namespace of its sessions. */
export type Bindings = Record<string, unknown> & { MCP_SESSION?: ObjectNamespace };
