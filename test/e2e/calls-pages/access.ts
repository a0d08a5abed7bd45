import { kinds } from '../../support/access/access-kinds.js';
import type { ModuleAccess } from '../../support/access/access-matrix.js';

export const access: ModuleAccess['access'] = { 'GET /calls': kinds.everyKeyReads };

/* signedOut, stranger, guest, owner, operator */
export const pages: ModuleAccess['pages'] = { 'GET /ui/calls': 'lyyyy', 'GET /ui/calls/csv': 'lyyyy' };
