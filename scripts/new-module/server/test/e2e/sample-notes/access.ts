import { kinds } from '../../support/access/access-kinds.js';
import type { ModuleAccess } from '../../support/access/access-matrix.js';

/** Every account, for servers that it may find. */
export const access: ModuleAccess['access'] = {
  'GET /sample-notes': kinds.everyKeyReads,
  'PUT /servers/{qualifiedName}/sample-notes': kinds.everyKeyWritesOfServer,
  'GET /servers/{qualifiedName}/sample-notes': kinds.everyKeyReadsOfServer,
  'DELETE /servers/{qualifiedName}/sample-notes': kinds.everyKeyWritesOfServer,
};
