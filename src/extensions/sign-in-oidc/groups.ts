import { type MemberRole, roles } from '../../extension.js';

export interface GroupRole {
  group: string;
  organization: string;
  role: MemberRole;
}

/** Reads entries `group=organization:role`, separated by semicolons or line breaks. A group can contain `=` and `:`. */
export function groupRolesIn(text: string): { groupRoles: GroupRole[]; problem: string | null } {
  const groupRoles: GroupRole[] = [];
  for (const entry of text.split(/[;\n]/).map((part) => part.trim())) {
    if (entry === '') continue;
    const [, group, organization, role] = /^(.+)=\s*([^=]+):\s*(\w+)$/.exec(entry) ?? [];
    if (!group || !organization || !roles.includes(role as MemberRole)) {
      const problem = `expected group=organization:role, with the role ${roles.join(', ')}, in place of "${entry.slice(0, 80)}"`;
      return { groupRoles: [], problem };
    }
    groupRoles.push({ group: group.trim(), organization: organization.trim(), role: role as MemberRole });
  }
  return { groupRoles, problem: null };
}

/**
 * Reads the groups of a person. An absent claim differs from an empty one: without it, the groups are unknown.
 *
 * @returns null without the claim, for one with values other than strings, and if the issuer only refers to the groups,
 *   as Entra ID does for people in more than 200 (`_claim_names`, `hasgroups`)
 */
export function groupsIn(claims: Record<string, unknown>, claim: string): Set<string> | null {
  const { [claim]: value, _claim_names: elsewhere, hasgroups } = claims;
  const isElsewhere = typeof elsewhere === 'object' && elsewhere !== null && Object.hasOwn(elsewhere, claim);
  if (isElsewhere || hasgroups === true || hasgroups === 'true') return null;
  if (typeof value === 'string') return new Set(value === '' ? [] : [value]);
  if (!Array.isArray(value) || value.some((group) => typeof group !== 'string')) return null;
  return new Set(value as string[]);
}

export function rolesOf(groups: ReadonlySet<string>, groupRoles: readonly GroupRole[]): Map<string, MemberRole> {
  const highest = new Map<string, MemberRole>();
  for (const { group, organization, role } of groupRoles) {
    const other = highest.get(organization);
    if (groups.has(group) && (!other || roles.indexOf(role) < roles.indexOf(other))) highest.set(organization, role);
  }
  return highest;
}
