import type { ModuleAccess } from '../../support/access/access-matrix.js';

/* The page has no operation of its own. */
export const access: ModuleAccess['access'] = {};

/* signedOut, stranger, guest, owner, operator */
export const pages: ModuleAccess['pages'] = { 'GET /ui/service': 'lfffy' };
