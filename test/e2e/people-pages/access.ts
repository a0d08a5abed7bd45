import type { ModuleAccess } from '../../support/access/access-matrix.js';

/* The operations are those of `/accounts`. */
export const access: ModuleAccess['access'] = {};

/* signedOut, stranger, guest, owner, operator; forms without the id of an account find none */
export const pages: ModuleAccess['pages'] = {
  'GET /ui/people': 'lfffy',
  'POST /ui/people/invite': 'lfffy',
  'POST /ui/people/link': 'lfffx',
  'POST /ui/people/state': 'lfffx',
  'POST /ui/people/operator': 'lfffx',
  'POST /ui/people/organization': 'lfffy',
  'GET /ui/new-organization': 'lfffy',
  'POST /ui/new-organization/create': 'lfffy',
  'GET /ui/o/{organization}': 'lxyyy',
  'POST /ui/o/{organization}/claim': 'lxyyy',
  'POST /ui/o/{organization}/leave': 'lxyyy',
  'POST /ui/o/{organization}/invite': 'lxfyy',
  'POST /ui/o/{organization}/key': 'lxfyy',
  'POST /ui/o/{organization}/role': 'lxfyy',
  'POST /ui/o/{organization}/remove': 'lxfyy',
  'POST /ui/o/{organization}/uninvite': 'lxfyy',
  'POST /ui/o/{organization}/revoke': 'lxfyy',
  'POST /ui/o/{organization}/end': 'lxfyy',
};

/** An organization of the owner, with a guest. */
export const fill: ModuleAccess['fill'] = async (app, { owner, guest }) => {
  const organization = await app.account({ kind: 'organization' });
  const members = `/accounts/${organization.id}/members`;
  await app.as(app.operator).put(`${members}/${owner.id}`, { role: 'owner' });
  await app.as(app.operator).put(`${members}/${guest.id}`, { role: 'guest' });
  return { organization: organization.id };
};
