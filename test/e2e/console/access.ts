import { kinds } from '../../support/access/access-kinds.js';
import type { ModuleAccess } from '../../support/access/access-matrix.js';
import { fill as fillGrants } from '../grants/access.js';

export const access: ModuleAccess['access'] = {
  'GET /ui/style.css': kinds.everybody,
  'GET /ui/copy.js': kinds.everybody,
};

/* signedOut, stranger, guest, owner, operator */
export const pages: ModuleAccess['pages'] = {
  'GET /ui': 'lyyyy',
  'POST /ui/requests/{qualifiedName}/{requestId}': 'lxfyx',
  'POST /ui/invitations/{invitationId}': 'lxxxx',
  'GET /ui/catalogue': 'lyyyy',
  'GET /ui/add': 'lyyyy',
  'POST /ui/add': 'lyyyy',
  'GET /ui/add/{namespace}/{connectionId}/tools': 'lxxyx',
  'POST /ui/add/{namespace}/{connectionId}/tools': 'lxxyx',
  'GET /ui/add/{namespace}/{connectionId}/access': 'lxxyx',
  'POST /ui/add/{namespace}/{connectionId}/access': 'lxxyx',
  'GET /ui/c/{namespace}/{connectionId}': 'lxyyx',
  'POST /ui/c/{namespace}/{connectionId}': 'lxfyx',
  'GET /ui/c/{namespace}/{connectionId}/fixture': 'lxfyx',
  'GET /ui/c/{namespace}/{connectionId}/tools/{tool}': 'lxyyx',
  'POST /ui/c/{namespace}/{connectionId}/tools/{tool}': 'lxyyx',
  'GET /ui/n/{namespace}': 'lxxyx',
  'GET /ui/s/{slug}': 'lyyyy',
  'POST /ui/s/{slug}': 'lyyyy',
  'GET /ui/o/{name}': 'lxyyy',
  'POST /ui/o/{name}': 'lxfyy',
};

/** An organization of the owner, with a guest, and what grants need. */
export const fill: ModuleAccess['fill'] = async (app, accounts) => {
  const { owner, guest } = accounts;
  const organization = await app.account({ kind: 'organization' });
  const members = `/accounts/${organization.id}/members`;
  await app.as(app.operator).put(`${members}/${owner.id}`, { role: 'owner' });
  await app.as(app.operator).put(`${members}/${guest.id}`, { role: 'guest' });
  return { ...(await fillGrants?.(app, accounts)), name: organization.name, tool: 'echo' };
};
