import type { ModuleAccess } from '../../support/access/access-matrix.js';

export const access: ModuleAccess['access'] = {};

/* signedOut, stranger, guest, owner, operator */
export const pages: ModuleAccess['pages'] = { 'GET /ui/registry': 'lyyyy' };
