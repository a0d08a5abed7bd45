/**
 * Orders hosts for a program by rendezvous hashing: the weight of a host is a hash of both ids, the highest comes first.
 * Every process computes the same order. When one of n hosts joins or leaves, 1 in n programs moves.
 */
export function ranked<Host extends { id: string }>(ownerId: string, hosts: readonly Host[]): Host[] {
  return hosts
    .map((host) => ({ host, weight: weightOf(`${ownerId} ${host.id}`) }))
    .sort((a, b) => b.weight - a.weight || (a.host.id < b.host.id ? -1 : 1))
    .map(({ host }) => host);
}

/** FNV-1a, then the finalizer of MurmurHash3, which spreads names that differ in one character. 32 bits. */
function weightOf(name: string): number {
  let hash = 0x811c9dc5;
  for (let i = 0; i < name.length; i += 1) hash = Math.imul(hash ^ name.charCodeAt(i), 0x01000193);
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return (hash ^ (hash >>> 16)) >>> 0;
}
