import type { ModuleAccess } from '../../support/access/access-matrix.js';

/* The row of its operation is in the matrix. */
export const access: ModuleAccess['access'] = {};

/* signedOut, stranger, guest, owner, operator */
export const pages: ModuleAccess['pages'] = { 'GET /ui/m/changes/{accountId}': 'lxxyy' };
