import type { ModuleAccess } from '../../support/access/access-matrix.js';

/* The rows of their operations are in the matrix. */
export const access: ModuleAccess['access'] = {};

/* signedOut, stranger, guest, owner, operator */
export const pages: ModuleAccess['pages'] = { 'GET /ui/calls': 'lyyyy', 'GET /ui/calls/csv': 'lyyyy' };
