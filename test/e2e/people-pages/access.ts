import type { ModuleAccess } from '../../support/access/access-matrix.js';

/* The operations are those of `/accounts`. */
export const access: ModuleAccess['access'] = {};

/* signedOut, stranger, guest, owner, operator */
export const pages: ModuleAccess['pages'] = {
  'GET /ui/people': 'lfffy',
  'POST /ui/people/invite': 'lfffy',
  'POST /ui/people/link': 'lfffy',
  'POST /ui/people/state': 'lfffy',
  'POST /ui/people/operator': 'lfffy',
  'POST /ui/people/organization': 'lfffy',
};
