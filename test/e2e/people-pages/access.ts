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
};
