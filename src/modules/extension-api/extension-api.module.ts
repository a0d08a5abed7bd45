import { Global, Module, type Abstract, type Type } from '@nestjs/common';
import { roleModule } from '../../config/role-module.js';
import { AuthModule } from '../auth/auth.module.js';
import { ConnectionsModule } from '../connections/connections.module.js';
import { GrantsModule } from '../grants/grants.module.js';
import { LogsModule } from '../logs/logs.module.js';
import { NamespacesModule } from '../namespaces/namespaces.module.js';
import { SourceModule } from '../connections/source/source.module.js';
import { PeopleModule } from '../people/people.module.js';
import { ReleasesModule } from '../releases/releases.module.js';
import { RunModule } from '../run/run.module.js';
import { ServersModule } from '../servers/servers.module.js';
import { Accounts, ServiceAccounts } from './accounts.facade.js';
import { Connections, ServiceConnections } from './connections.facade.js';
import { FacadeTargets } from './facade-targets.js';
import { Grants, ServiceGrants } from './grants.facade.js';
import { EgressHttp, Http } from './http.facade.js';
import { Identities, ServiceIdentities } from './identities.facade.js';
import { Logs, ServiceLogs } from './logs.facade.js';
import { Namespaces, ServiceNamespaces } from './namespaces.facade.js';
import { Releases, ServiceReleases } from './releases.facade.js';
import { Secrets, VaultSecrets } from './secrets.facade.js';
import { Servers, ServiceServers } from './servers.facade.js';
import { ServiceTools, Tools } from './tools.facade.js';

const facade = <T>(provide: Abstract<T>, useClass: Type<T>) => ({ provide, useClass });

/** Provides each facade under its abstract class, to every module without an import. */
@Global()
@Module({})
export class ExtensionApiModule {
  static readonly forRoles = roleModule((env) => ({
    module: ExtensionApiModule,
    always: { providers: [facade(Http, EgressHttp), facade(Secrets, VaultSecrets)], exports: [Http, Secrets] },
    api: {
      imports: [
        ...[
          AuthModule,
          ConnectionsModule,
          GrantsModule,
          LogsModule,
          NamespacesModule,
          PeopleModule,
          ReleasesModule,
          RunModule,
          ServersModule,
          SourceModule,
        ],
      ].map((module) => module.forRoles(env)),
      providers: [
        FacadeTargets,
        facade(Accounts, ServiceAccounts),
        facade(Connections, ServiceConnections),
        facade(Grants, ServiceGrants),
        facade(Identities, ServiceIdentities),
        facade(Logs, ServiceLogs),
        facade(Namespaces, ServiceNamespaces),
        facade(Releases, ServiceReleases),
        facade(Servers, ServiceServers),
        facade(Tools, ServiceTools),
      ],
      exports: [Accounts, Connections, Grants, Identities, Logs, Namespaces, Releases, Servers, Tools],
    },
  }));
}
