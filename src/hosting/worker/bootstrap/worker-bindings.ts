/** What the wrapper uses of workerd beyond the web's own types. */

/** Keeps a request alive past its answer. */
export interface ExecutionContext {
  waitUntil(promise: Promise<unknown>): void;
}

/** The store of one Durable Object, on disk. */
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
  /** The same id for the same name; only who knows the name can tell it. */
  idFromName(name: string): ObjectId;
  /** @throws TypeError when this namespace never gave such an id */
  idFromString(text: string): ObjectId;
  get(id: ObjectId): { fetch(request: Request): Promise<Response> };
}

export interface ObjectId {
  toString(): string;
}

/** The bindings of a program: its secrets, and the namespace of its sessions. */
export type Bindings = Record<string, unknown> & { MCP_SESSION?: ObjectNamespace };
