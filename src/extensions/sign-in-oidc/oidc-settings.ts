import { z } from 'zod';
import { type GroupRole, groupRolesIn } from './groups.js';

/** Separates the secrets and memberships of this module from those of others. */
export const MODULE = 'oidc';

/** Hosts at which the path of an issuer belongs to one company. */
const ENTRA = /^login\.(?:microsoftonline\.(?:com|us)|partner\.microsoftonline\.cn)$/;

/** Paths at which Entra ID signs in accounts of any company; the last is the tenant of personal accounts. */
const ANY_TENANT = /^\/(?:common|organizations|consumers|9188040d-6c67-4c5b-b112-36a304b66dad)(?:\/|$)/;

const onOrOff = z.enum(['on', 'off']);

export const oidcSettingsSchema = z
  .object({
    OIDC_ISSUER: z.string(),
    OIDC_CLIENT_ID: z.string(),
    OIDC_CLIENT_SECRET: z.string(),
    OIDC_NAME: z.string().max(60).optional(),
    OIDC_SCOPES: z.string().optional(),
    OIDC_ONLY: onOrOff.default('off'),
    OIDC_SIGN_UP: onOrOff.default('on'),
    OIDC_DOMAINS: z.string().default('').transform(domainsIn),
    OIDC_GROUPS: z
      .string()
      .default('')
      .transform((text, context): GroupRole[] => {
        const { groupRoles, problem } = groupRolesIn(text);
        if (problem !== null) context.addIssue({ code: 'custom', message: problem });
        return groupRoles;
      }),
    OIDC_GROUPS_CLAIM: z.string().min(1).default('groups'),
    OIDC_SESSION_HOURS: z.coerce.number().int().min(1).max(8_760).default(12),
  })
  .superRefine(({ OIDC_ISSUER, OIDC_SCOPES, OIDC_DOMAINS }, context) => {
    const add = (name: string, message: string) => context.addIssue({ code: 'custom', path: [name], message });
    const problem = issuerProblem(OIDC_ISSUER);
    if (problem !== null) return add('OIDC_ISSUER', problem);
    if (OIDC_SCOPES?.split(' ').includes('openid') === false) add('OIDC_SCOPES', 'expected "openid" among the scopes');
    if (OIDC_DOMAINS.length === 0 && isMultiTenant(new URL(OIDC_ISSUER))) {
      add(
        'OIDC_DOMAINS',
        'OIDC_ISSUER signs in people of any company. Name the domains of your company, or use the issuer of your tenant',
      );
    }
  });

export type OidcSettings = z.infer<typeof oidcSettingsSchema>;

function domainsIn(list: string): string[] {
  return list
    .toLowerCase()
    .split(/[\s,]+/)
    .filter(Boolean);
}

function issuerProblem(issuer: string): string | null {
  if (!URL.canParse(issuer)) return 'expected a URL';
  const { protocol, hostname, search, hash, pathname } = new URL(issuer);
  const isLoopback = /^(?:localhost|127(?:\.\d+){3}|\[::1\])$/.test(hostname);
  if (protocol !== 'https:' && !(protocol === 'http:' && isLoopback)) return 'expected a URL that begins with https://';
  if (search !== '' || hash !== '') return 'expected a URL without "?" and "#"';
  return pathname.includes('/.well-known/') ? 'expected the URL in front of /.well-known/openid-configuration' : null;
}

function isMultiTenant({ hostname, pathname }: URL): boolean {
  return hostname === 'accounts.google.com' || (ENTRA.test(hostname) && ANY_TENANT.test(pathname));
}

export function nameOf({ OIDC_NAME, OIDC_ISSUER }: OidcSettings): string {
  return OIDC_NAME ?? new URL(OIDC_ISSUER).hostname;
}
