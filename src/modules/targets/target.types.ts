/** Kinds of targets, in the form of the API. */
export const targetKinds = ['server', 'connection', 'namespace'] as const;
export type TargetKind = (typeof targetKinds)[number];

/**
 * Access to a server without a grant: everybody can find and call it (`public`), everybody can find it (`restricted`),
 * or nobody can (`private`). The owner always can. Sorted from the most open one.
 */
export const visibilities = ['public', 'restricted', 'private'] as const;
export type Visibility = (typeof visibilities)[number];

/** A server, a connection or a namespace: a row of the view `targets`. */
export interface Target {
  kind: TargetKind;
  id: string;
  /** The namespace that contains it; for a namespace, its own id. */
  namespaceId: string;
  namespace: string;
  /** The part of a qualified name after the slash, or the id of a connection; '' for a namespace. */
  name: string;
  /** The name for people; otherwise the same as `name`. */
  title: string;
  /** The account that owns the namespace. */
  ownerId: string;
  /** Null for connections and namespaces, which need an owner or a grant. */
  visibility: Visibility | null;
  /** The operator's reason, for the target or its namespace; null while in use. */
  suspended: string | null;
}

/** A target by its row id. */
export type TargetRef = Pick<Target, 'kind' | 'id'>;

export type TargetName = Pick<Target, 'kind' | 'namespace' | 'name'>;

export function namespaceNamed(namespace: string): TargetName & { kind: 'namespace' } {
  return { kind: 'namespace', namespace, name: '' };
}

/** Returns the key of a target; names of servers ignore case. */
export function keyOf({ kind, name }: TargetName): string {
  return kind === 'server' ? name.toLowerCase() : name;
}

/** Returns the qualified name of a target, as developers know it: `acme/weather`, or `acme` for a namespace. */
export function qualifiedNameOf({ namespace, name }: TargetName): string {
  return name === '' ? namespace : `${namespace}/${name}`;
}
