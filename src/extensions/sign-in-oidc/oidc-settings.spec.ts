import { expect, it } from '@jest/globals';
import { groupRolesIn, groupsIn, rolesOf } from './groups.js';
import { identityOf } from './identity.js';
import { oidcSettingsSchema } from './oidc-settings.js';

const read = (settings: object) => {
  const values = { OIDC_CLIENT_ID: 'slipway', OIDC_CLIENT_SECRET: 'secret', ...settings };
  const { data, error } = oidcSettingsSchema.safeParse(values);
  return data ?? error?.issues.map(({ path, message }) => `${path.join()}: ${message}`);
};
const entra = (tenant: string) => `https://login.microsoftonline.com/${tenant}/v2.0`;

it('take an issuer by https, and by http on this machine', () => {
  expect(read({ OIDC_ISSUER: 'https://id.example.com', OIDC_DOMAINS: 'Example.com, example.org' })).toEqual({
    ...{ OIDC_ISSUER: 'https://id.example.com', OIDC_CLIENT_ID: 'slipway', OIDC_CLIENT_SECRET: 'secret' },
    ...{ OIDC_ONLY: 'off', OIDC_SIGN_UP: 'on', OIDC_DOMAINS: ['example.com', 'example.org'], OIDC_SESSION_HOURS: 12 },
    ...{ OIDC_GROUPS: [], OIDC_GROUPS_CLAIM: 'groups' },
  });
  expect(read({ OIDC_ISSUER: 'http://127.0.0.1:8080/realms/staff' })).toMatchObject({ OIDC_SIGN_UP: 'on' });
  expect(read({ OIDC_ISSUER: entra('6f1c8a64-7f0d-4f3e-9a53-0a5c9f6f7d11') })).toMatchObject({ OIDC_SIGN_UP: 'on' });
});

it.each([
  [{ OIDC_ISSUER: 'http://id.example.com' }, 'OIDC_ISSUER: expected a URL that begins with https://'],
  [{ OIDC_ISSUER: 'id.example.com' }, 'OIDC_ISSUER: expected a URL'],
  [{ OIDC_ISSUER: 'https://id.example.com/?tenant=1' }, 'OIDC_ISSUER: expected a URL without "?" and "#"'],
  [
    { OIDC_ISSUER: 'https://id.example.com/.well-known/openid-configuration' },
    'OIDC_ISSUER: expected the URL in front of /.well-known/openid-configuration',
  ],
  [{ OIDC_ISSUER: 'https://id.example.com', OIDC_SCOPES: 'email' }, 'OIDC_SCOPES: expected "openid" among the scopes'],
  ...['https://accounts.google.com', entra('common'), entra('organizations'), entra('consumers')].map(
    (OIDC_ISSUER) =>
      [
        { OIDC_ISSUER },
        'OIDC_DOMAINS: OIDC_ISSUER signs in people of any company. Name the domains of your company, or use the issuer of your tenant',
      ] as const,
  ),
])('reject %j', (settings, problem) => {
  expect(read(settings)).toEqual([problem]);
});

it.each<[claims: Record<string, unknown>, domain: string | null]>([
  [{ email: 'a@Example.com', email_verified: true }, 'example.com'],
  [{ email: 'a@example.com', email_verified: 'true' }, 'example.com'],
  [{ email: 'a@example.com', xms_edov: 1 }, 'example.com'],
  [{ email: 'a@example.com', email_verified: 'yes' }, null],
  [{ email: 'example.com', email_verified: true }, null],
  [{ iss: 'https://accounts.google.com', email: 'a@example.com', email_verified: true }, null],
  [
    { iss: 'https://accounts.google.com', email: 'a@gmail.com', email_verified: true, hd: 'Example.com' },
    'example.com',
  ],
])('trust of %j the domain %s', (claims, domain) => {
  expect(identityOf({ iss: 'https://id.example.com', sub: '1', ...claims }).domain).toBe(domain);
});

it.each<[claims: Record<string, unknown>, accountName: string, name: string]>([
  [{ preferred_username: 'Anna@example.com', email: 'a.berg@example.com' }, 'anna', 'a.berg@example.com'],
  [{ email: 'A.Berg@example.com', name: 'Anna Berg' }, 'a.berg', 'A.Berg@example.com'],
  [{ preferred_username: '\u200b', nickname: 'Anna' }, 'anna', 'Anna'],
  [{ name: ['Anna'] }, 'user', 'sub-1'],
])('name the account of %j %s', (claims, accountName, name) => {
  expect(identityOf({ iss: 'https://id.example.com', sub: 'sub-1', ...claims })).toMatchObject({ accountName, name });
});

it.each([
  ['devs=acme:editor', 'devs acme editor'],
  ['CN=devs,OU=x=acme:editor;\n /a:b = Acme Labs : guest ;', 'CN=devs,OU=x acme editor, /a:b Acme Labs guest'],
  ['devs=acme', null],
  ['devs=acme:admin', null],
  ['=acme:owner', null],
])('read the groups %j', (text, entries) => {
  const { groupRoles, problem } = groupRolesIn(text);
  const written = groupRoles.map(({ group, organization, role }) => `${group} ${organization} ${role}`).join(', ');
  expect([written, problem === null]).toEqual([entries ?? '', entries !== null]);
});

const MANY = Array.from({ length: 10_000 }, (_, number) => `group-${number}`);
it.each<[claims: Record<string, unknown>, roles: string | null]>([
  [{}, null],
  [{ groups: null }, null],
  [{ groups: [] }, ''],
  [{ groups: '' }, ''],
  [{ groups: 'devs' }, 'acme editor'],
  [{ groups: 'devs,admins' }, ''],
  [{ groups: ['devs', 'admins', 'Devs'] }, 'acme owner'],
  [{ groups: ['devs', 'guests'] }, 'acme editor, labs guest'],
  [{ groups: [...MANY, 'devs'] }, 'acme editor'],
  [{ groups: ['devs', { name: 'admins' }] }, null],
  [{ groups: { devs: true } }, null],
  [{ groups: [['devs']] }, null],
  [{ groups: ['__proto__'] }, ''],
  [{ _claim_names: { groups: 'src1' }, groups: [] }, null],
  [{ hasgroups: true, groups: [] }, null],
  [{ _claim_names: { address: 'src1' }, groups: ['devs'] }, 'acme editor'],
])('give for %j the roles %j', (claims, expected) => {
  const { groupRoles } = groupRolesIn('devs=acme:editor; admins=acme:owner; guests=acme:guest; guests=labs:guest');
  const groups = groupsIn(claims, 'groups');
  expect(groups && [...rolesOf(groups, groupRoles)].map((entry) => entry.join(' ')).join(', ')).toBe(expected);
});
