import type { ModuleAccess } from '../../support/access/access-matrix.js';

/* Its operation stands in the matrix. */
export const access: ModuleAccess['access'] = {};

/* signedOut, stranger, guest, owner, operator */
export const pages: ModuleAccess['pages'] = { 'GET /ui/m/changes/{accountId}': 'lxxyy' };
