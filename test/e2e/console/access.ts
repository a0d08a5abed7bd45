import { kinds } from '../../support/access/access-kinds.js';
import type { ModuleAccess } from '../../support/access/access-matrix.js';
import { fill as fillGrants } from '../grants/access.js';

export const access: ModuleAccess['access'] = {
  'GET /ui/style.css': kinds.everybody,
  'GET /ui/script.js': kinds.everybody,
  'GET /ui/mark.svg': kinds.everybody,
};

/* signedOut, stranger, guest, owner, operator */
export const pages: ModuleAccess['pages'] = {
  'GET /ui': 'lyyyy',
  'POST /ui/invitations/{invitationId}/accept': 'lxxxx',
  'POST /ui/invitations/{invitationId}/decline': 'lxxxx',
  'GET /ui/catalogue': 'lyyyy',
  'GET /ui/add': 'lyyyy',
  'POST /ui/add/find': 'lyyyy',
  'POST /ui/add/create': 'lyyyy',
  'GET /ui/add/{namespace}/{connectionId}/tools': 'lxfyx',
  'POST /ui/add/{namespace}/{connectionId}/tools': 'lxfyx',
  'POST /ui/add/{namespace}/{connectionId}/tools/save': 'lxfyx',
  'GET /ui/access/{kind}/{target}': 'lxxyx',
  'POST /ui/access/{kind}/{target}/grant': 'lxxyx',
  'POST /ui/access/{kind}/{target}/refuse': 'lxxxx',
  'POST /ui/access/{kind}/{target}/end': 'lxxxx',
  'GET /ui/c/{namespace}/{connectionId}': 'lxyyx',
  'POST /ui/c/{namespace}/{connectionId}/check': 'lxfyx',
  'POST /ui/c/{namespace}/{connectionId}/settings/{setting}': 'lxfyx',
  'POST /ui/c/{namespace}/{connectionId}/record': 'lxfyx',
  'POST /ui/c/{namespace}/{connectionId}/stop': 'lxfyx',
  'POST /ui/c/{namespace}/{connectionId}/forget': 'lxfyx',
  'POST /ui/c/{namespace}/{connectionId}/delete': 'lxfyx',
  'GET /ui/c/{namespace}/{connectionId}/fixture': 'lxfyx',
  'GET /ui/c/{namespace}/{connectionId}/tools/{tool}': 'lxyyx',
  'POST /ui/c/{namespace}/{connectionId}/tools/{tool}': 'lxyyx',
  'GET /ui/n/{namespace}': 'lxxyx',
  'POST /ui/n/{namespace}/delete': 'lxxyx',
  'GET /ui/s/{slug}': 'lyyyy',
  'POST /ui/s/{slug}/ask': 'lyyyy',
  'POST /ui/s/{slug}/set-up': 'lyyyy',
};

/** A connection of the owner, and what grants need. */
export const fill: ModuleAccess['fill'] = async (app, accounts) => {
  const { namespace, connectionId } = accounts;
  const target = encodeURIComponent(`${namespace}/${connectionId}`);
  return { ...(await fillGrants?.(app, accounts)), setting: 'name', tool: 'echo', kind: 'connection', target };
};
