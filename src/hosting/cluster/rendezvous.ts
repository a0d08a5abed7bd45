/**
 * The hosts in the order in which a program wants them (rendezvous hashing: each host's weight is a hash of both names,
 * the highest wins). Every process comes to the same order by itself, and when a host comes or goes only the programs move
 * whose first choice it is: 1 in n.
 */
export function ranked<Host extends { id: string }>(ownerId: string, hosts: readonly Host[]): Host[] {
  return hosts
    .map((host) => ({ host, weight: weightOf(`${ownerId} ${host.id}`) }))
    .sort((a, b) => b.weight - a.weight || (a.host.id < b.host.id ? -1 : 1))
    .map(({ host }) => host);
}

/** FNV-1a and the last step of MurmurHash3, which spreads names that differ in one place: 32 bits, no secret. */
function weightOf(name: string): number {
  let hash = 0x811c9dc5;
  for (let i = 0; i < name.length; i += 1) hash = Math.imul(hash ^ name.charCodeAt(i), 0x01000193);
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return (hash ^ (hash >>> 16)) >>> 0;
}
