/**
 * Who may import whom. CONTRIBUTING.md explains the rules in words:
 *
 *   connections ─► run ─► releases ─► logs, tool-schemas, oauth ─► servers ─► namespaces ─► auth ─► targets
 *   skills ─────► namespaces
 *   oauth ──────► people ─► auth
 *   console ─► authorization-server ─► grants ─► connections
 *   modules ────► hosting, mcp ─► platform ─► config
 */

/** The modules that each module may import. */
const uses = {
  targets: [],
  auth: ['targets'],
  namespaces: ['auth', 'targets'],
  servers: ['namespaces', 'auth', 'targets'],
  oauth: ['servers', 'namespaces', 'people', 'auth', 'targets'],
  logs: ['servers', 'namespaces', 'auth', 'targets'],
  'tool-schemas': ['servers', 'namespaces', 'auth', 'targets'],
  releases: ['logs', 'tool-schemas', 'oauth', 'servers', 'namespaces', 'auth', 'targets'],
  run: ['releases', 'logs', 'tool-schemas', 'oauth', 'servers', 'namespaces', 'auth', 'targets'],
  connections: ['run', 'releases', 'logs', 'tool-schemas', 'oauth', 'servers', 'namespaces', 'auth', 'targets'],
  skills: ['namespaces', 'auth', 'targets'],
  people: ['auth', 'targets'],
  grants: ['connections', 'logs', 'oauth', 'servers', 'namespaces', 'auth', 'targets'],
  'authorization-server': ['grants', 'connections', 'servers', 'namespaces', 'people', 'auth', 'targets'],
  console: [
    ...[
      'authorization-server',
      'grants',
      'connections',
      'run',
      'releases',
      'logs',
      'tool-schemas',
      'oauth',
      'skills',
      'servers',
    ],
    ...['namespaces', 'people', 'auth', 'targets'],
  ],
};
/** A module that is not in the table may import all of these, and is imported by none of them. */
const newModuleUses = Object.keys(uses);

/** The folders of src/mcp that each folder may import; files directly in src/mcp put them together. */
const mcpUses = {
  protocol: [],
  eras: ['protocol'],
  oauth: ['protocol'],
  client: ['protocol', 'eras', 'oauth'],
  server: ['protocol', 'client'],
  aggregate: ['protocol', 'client'],
};

/** The folders of src/modules/connections that each of them may import; files directly in it put them together. */
const connectionUses = {
  core: [],
  log: ['core'],
  recheck: ['core'],
  diagnosis: ['core', 'setup'],
  mock: ['core'],
  uplink: ['core'],
  namespace: ['core', 'log'],
  source: ['core', 'log'],
  tools: ['core', 'log'],
  setup: ['core', 'recheck'],
  probe: ['core', 'tools'],
};

/** The configuration schemas of releases, which modules/run shares. */
const configOfReleases = '^src/modules/releases/(config/|program-ref\\.ts$)';

const known = Object.keys(uses).join('|');
/** The composition root: src/main.ts, src/app.module.ts, src/app.setup.ts, … */
const roots = '^src/[^/]+\\.ts$|^src/cli/';

/** A module and those it may use. */
function direction(name, from, allowed) {
  return {
    name,
    comment: `Dependencies point one way. A lower module that must inform a higher one emits an event, publishes a topic or feeds a queue. To import another module from here on purpose, add it to the table in .dependency-cruiser.cjs.`,
    severity: 'error',
    from,
    to: { path: '^src/modules/', pathNot: allowed.map((module) => `^src/modules/${module}/`) },
  };
}

module.exports = {
  forbidden: [
    ...Object.entries(uses).map(([module, allowed]) =>
      direction(`modules-${module}`, { path: `^src/modules/${module}/` }, [module, ...allowed]),
    ),
    direction('modules-new', { path: '^src/modules/([^/]+)/', pathNot: `^src/modules/(${known})/` }, [
      '$1',
      ...newModuleUses,
    ]),
    {
      name: 'modules-front-door',
      comment:
        'Another module is used through its *.module, *.service, *.guard, *.decorator, *.errors, *.types, *.access, *.page and *.events files; its entities, DTOs and queues are its own. An entity may point at an entity further down, for the foreign key.',
      severity: 'error',
      from: { path: '^src/modules/([^/]+)/', pathNot: ['\\.entity\\.ts$', '^src/modules/extension-api/'] },
      to: {
        path: '^src/modules/',
        pathNot: [
          '^src/modules/$1/',
          '\\.(module|service|guard|decorator|errors|types|access|page|events)\\.ts$',
          configOfReleases,
        ],
      },
    },
    {
      name: 'modules-front-door-entity',
      comment:
        'An entity may point at an entity of another module, for the foreign key, and otherwise uses its front door.',
      severity: 'error',
      from: { path: '^src/modules/([^/]+)/.*\\.entity\\.ts$' },
      to: {
        path: '^src/modules/',
        pathNot: ['^src/modules/$1/', '\\.(module|service|guard|decorator|errors|types|events|entity)\\.ts$'],
      },
    },
    {
      name: 'modules-front-door-extension-api',
      comment: 'The facades return what REST returns, so they also name the DTOs of other modules.',
      severity: 'error',
      from: { path: '^src/modules/extension-api/' },
      to: {
        path: '^src/modules/',
        pathNot: ['^src/modules/extension-api/', '\\.(module|service|decorator|errors|types|access|dto)\\.ts$'],
      },
    },
    {
      name: 'platform-stands-alone',
      comment: 'Every module stands on platform, so platform knows none of them, and no MCP and no hosting either.',
      severity: 'error',
      from: { path: '^src/platform/' },
      to: { path: '^src/(modules|mcp|hosting)/' },
    },
    {
      name: 'mcp-knows-no-module',
      comment: 'mcp speaks the protocol and knows no HTTP resource of ours; modules hand it what it needs.',
      severity: 'error',
      from: { path: '^src/mcp/' },
      to: { path: '^src/modules/' },
    },
    {
      name: 'hosting-knows-no-module',
      comment: 'hosting runs code it is given; what a release is, is known in modules/releases.',
      severity: 'error',
      from: { path: '^src/hosting/' },
      to: { path: '^src/modules/' },
    },
    {
      name: 'hosting-knows-no-mcp',
      comment: 'Programs are called over HTTP. Only hosting/mcp knows that it is MCP.',
      severity: 'error',
      from: { path: '^src/hosting/', pathNot: '^src/hosting/mcp/' },
      to: { path: '^src/mcp/' },
    },
    {
      name: 'mcp-knows-no-hosting',
      comment: 'mcp reaches hosted programs through the HttpDispatcher it is given.',
      severity: 'error',
      from: { path: '^src/mcp/' },
      to: { path: '^src/hosting/' },
    },
    ...Object.entries(mcpUses).map(([folder, allowed]) => ({
      name: `mcp-${folder}`,
      comment: 'The two faces of the protocol, client and server, share mcp/protocol; see the table above.',
      severity: 'error',
      from: { path: `^src/mcp/${folder}/` },
      to: { path: '^src/mcp/', pathNot: [folder, ...allowed].map((one) => `^src/mcp/${one}/`) },
    })),
    ...Object.entries(connectionUses).map(([folder, allowed]) => ({
      name: `connections-${folder}`,
      comment: 'The folders of connections stand on core, and provide transports to it; see the table above.',
      severity: 'error',
      from: { path: `^src/modules/connections/${folder}/`, pathNot: '\\.spec\\.ts$' },
      to: {
        path: '^src/modules/connections/',
        pathNot: [folder, ...allowed].map((one) => `^src/modules/connections/${one}/`),
      },
    })),
    {
      name: 'config-stands-alone',
      comment: 'Everything reads the settings, so the settings read nothing of ours.',
      severity: 'error',
      from: { path: '^src/config/' },
      to: { path: '^(src|migrations|test)/', pathNot: '^src/config/' },
    },
    {
      name: 'nothing-imports-the-start',
      comment: 'The files that put the application together may import everything, so nothing below may import them.',
      severity: 'error',
      from: { path: '^src/', pathNot: [roots, '^src/extensions/', '\\.spec\\.ts$'] },
      to: { path: roots },
    },
    {
      name: 'extensions-use-the-entry-point',
      comment: 'A module of src/extensions imports what every module outside the tree may import, and its own files.',
      severity: 'error',
      from: { path: '^src/extensions/([^/]+)/', pathNot: '\\.spec\\.ts$' },
      to: { path: '^(src|migrations|test)/', pathNot: ['^src/extensions/$1/', '^src/extension\\.ts$'] },
    },
    {
      name: 'migrations-stand-alone',
      comment: 'A merged migration never changes; one that imports live code changes with it.',
      severity: 'error',
      from: { path: '^migrations/' },
      to: { path: '^(src|test)/' },
    },
    {
      name: 'nothing-imports-tests',
      comment: 'Test helpers are not part of the build. Specs beside the code may use them.',
      severity: 'error',
      from: { path: '^(src|migrations)/', pathNot: '\\.spec\\.ts$' },
      to: { path: '^test/|\\.spec\\.ts$' },
    },
    {
      name: 'no-cycles',
      comment:
        'A cycle cannot be read, tested or taken apart one file at a time. Entities may point at each other: a relation has two ends.',
      severity: 'error',
      from: { path: '^(src|migrations)/' },
      to: { circular: true, via: { pathNot: '\\.entity\\.ts$' } },
    },
    {
      name: 'no-unresolvable',
      comment: 'An import that cannot be followed escapes every other rule.',
      severity: 'error',
      from: { path: '^(src|migrations)/' },
      to: { couldNotResolve: true },
    },
    {
      name: 'no-dev-dependencies',
      comment: 'The production image is installed without development dependencies.',
      severity: 'error',
      from: { path: '^(src|migrations)/', pathNot: '\\.spec\\.ts$' },
      to: { dependencyTypes: ['npm-dev'], dependencyTypesNot: ['type-only'] },
    },
    {
      name: 'no-undeclared-dependencies',
      comment: 'A package that is only there because another one uses it can vanish with any update.',
      severity: 'error',
      from: { path: '^(src|migrations)/', pathNot: '\\.spec\\.ts$' },
      to: {
        dependencyTypes: ['npm-no-pkg', 'npm-unknown'],
        dependencyTypesNot: ['type-only', 'aliased-subpath-import'],
      },
    },
    {
      name: 'api-docs-by-alias',
      comment:
        'The service does not load @nestjs/swagger: import `#api-docs`, which is that package only where documents are rendered.',
      severity: 'error',
      from: {
        path: '^src/',
        pathNot: ['^src/(app\\.render-docs|platform/http/openapi-document)\\.ts$', '\\.spec\\.ts$'],
      },
      to: { path: 'node_modules/@nestjs/swagger/', dependencyTypesNot: ['type-only', 'aliased-subpath-import'] },
    },
  ],
  options: {
    doNotFollow: { path: 'node_modules' },
    // Types count: who imports another's type depends on it.
    tsPreCompilationDeps: true,
    tsConfig: { fileName: 'tsconfig.json' },
    enhancedResolveOptions: {
      exportsFields: ['exports'],
      conditionNames: ['import', 'node', 'types', 'default'],
      extensions: ['.ts', '.js', '.mjs', '.cjs', '.json', '.d.ts'],
    },
    moduleSystems: ['es6', 'tsd', 'cjs'],
  },
};
