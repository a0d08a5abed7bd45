import type { ModuleAccess } from '../../support/access/access-matrix.js';

/* The rows of their operations are in the matrix. */
export const access: ModuleAccess['access'] = {};

/* signedOut, stranger, guest, owner, operator */
export const pages: ModuleAccess['pages'] = {
  'GET /ui/publish': 'lyyyy',
  'POST /ui/publish/url': 'lyyyy',
  'POST /ui/publish/file': 'lyyyy',
  'POST /ui/publish/code': 'lyyyy',
  'GET /ui/s/{slug}/releases': 'lxfyx',
  'GET /ui/s/{slug}/releases/{id}': 'lxfyx',
  'POST /ui/s/{slug}/releases/roll-back': 'lxfxx',
  'POST /ui/s/{slug}/releases/resume': 'lxfxx',
  'GET /ui/s/{slug}/logs': 'lxfyx',
  'GET /ui/s/{slug}/logs/stream': 'lxfyx',
  'GET /ui/s/{slug}/settings': 'lxxyx',
  'POST /ui/s/{slug}/settings/visibility': 'lxxyx',
  'POST /ui/s/{slug}/settings/texts': 'lxxyx',
  'POST /ui/s/{slug}/settings/secret': 'lxxyx',
  'POST /ui/s/{slug}/settings/secret-delete': 'lxxxx',
  'POST /ui/s/{slug}/settings/runtime': 'lxxyx',
  'POST /ui/s/{slug}/settings/delete': 'lxxyx',
};
