/** Kinds of targets, in the form of the API. */
export const targetKinds = ['server', 'connection', 'namespace'] as const;
export type TargetKind = (typeof targetKinds)[number];

/**
 * Access to a server without a grant: everybody may find and call it (`public`), everybody may find it (`restricted`), or
 * nobody may (`private`). The owner always may. Sorted from the most open one.
 */
export const visibilities = ['public', 'restricted', 'private'] as const;
export type Visibility = (typeof visibilities)[number];

/** A server, a connection or a namespace: a row of the view `targets`. */
export interface Target {
  kind: TargetKind;
  /** The id of its row. */
  id: string;
  /** The namespace that holds it; of a namespace its own id. */
  namespaceId: string;
  /** The name of the namespace. */
  namespace: string;
  /** The part of a qualified name behind the slash, or the id of a connection; '' for a namespace. */
  name: string;
  /** The name that people know it by; its name where it has no other. */
  title: string;
  /** The account that owns the namespace. */
  ownerId: string;
  /** Null for connections and namespaces, which need an owner or a grant. */
  visibility: Visibility | null;
  /** Why the operator suspended it, or its namespace; null for one in use. */
  suspended: string | null;
}

/** A target by the id of its row. */
export type TargetRef = Pick<Target, 'kind' | 'id'>;

/** A target by its names. */
export type TargetName = Pick<Target, 'kind' | 'namespace' | 'name'>;

/** The namespace of this name as a target. */
export function namespaceNamed(namespace: string): TargetName & { kind: 'namespace' } {
  return { kind: 'namespace', namespace, name: '' };
}

/** The key of a target within its namespace. Two names of servers differ by more than their case. */
export function keyOf({ kind, name }: TargetName): string {
  return kind === 'server' ? name.toLowerCase() : name;
}

/** The qualified name of a target, as developers know it: `acme/weather`, or `acme` for a namespace. */
export function qualifiedNameOf({ namespace, name }: TargetName): string {
  return name === '' ? namespace : `${namespace}/${name}`;
}
