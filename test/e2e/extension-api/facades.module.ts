import { Injectable, Module } from '@nestjs/common';
import {
  Accounts,
  Connections,
  defineModule,
  Grants,
  Http,
  Logs,
  Namespaces,
  Releases,
  roleModule,
  Secrets,
  Servers,
  Tools,
} from '../../../src/extension.js';

/** Injects every facade, without an import of its module. */
@Injectable()
export class Facades {
  constructor(
    readonly accounts: Accounts,
    readonly connections: Connections,
    readonly grants: Grants,
    readonly http: Http,
    readonly logs: Logs,
    readonly namespaces: Namespaces,
    readonly releases: Releases,
    readonly secrets: Secrets,
    readonly servers: Servers,
    readonly tools: Tools,
  ) {}
}

@Module({})
class FacadesModule {
  static readonly forRoles = roleModule(() => ({ module: FacadesModule, api: { providers: [Facades] } }));
}

export default defineModule({ name: 'facades', module: FacadesModule.forRoles });
