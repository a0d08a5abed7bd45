import { kinds } from '../../support/access/access-kinds.js';
import type { ModuleAccess } from '../../support/access/access-matrix.js';

export const access: ModuleAccess['access'] = { 'POST /servers/{qualifiedName}/otlp/v1/logs': kinds.ownerPublishes };
