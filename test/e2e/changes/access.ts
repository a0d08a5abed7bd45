import type { ModuleAccess } from '../../support/access/access-matrix.js';

/* signedOut, stranger, guest, owner, operator */
export const pages: ModuleAccess['pages'] = { 'GET /ui/m/changes/{account}': 'lxxyy' };
