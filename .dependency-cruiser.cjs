/**
 * Who may import whom. CONTRIBUTING.md draws the same picture:
 *
 *   connections ─► releases ─► logs, tool-schemas, credentials ─► servers ─► namespaces ─► auth
 *   skills ─────► namespaces
 *   modules ────► hosting, mcp ─► platform ─► config
 */

/** The rooms each module may use. Further along the arrows is allowed, back or sideways is not. */
const uses = {
  auth: [],
  namespaces: ['auth'],
  servers: ['namespaces', 'auth'],
  credentials: ['servers', 'namespaces', 'auth'],
  logs: ['servers', 'namespaces', 'auth'],
  'tool-schemas': ['servers', 'namespaces', 'auth'],
  releases: ['logs', 'tool-schemas', 'credentials', 'servers', 'namespaces', 'auth'],
  connections: ['releases', 'logs', 'tool-schemas', 'credentials', 'servers', 'namespaces', 'auth'],
  skills: ['namespaces', 'auth'],
};
/** A module without a line above may use all of these and is used by none, so it needs no edit here. */
const newModuleUses = Object.keys(uses);

const known = Object.keys(uses).join('|');
/** The files that put everything together: src/main.ts, src/app.module.ts, src/app.setup.ts, … */
const roots = '^src/[^/]+\\.ts$|^src/cli/';

/** A module and those it may use. */
function direction(name, from, allowed) {
  return {
    name,
    comment: `Dependencies point one way. A lower room that must tell a higher one something takes a listener or feeds a queue. To use another module from here, move the wall on purpose: add it to the table in .dependency-cruiser.cjs.`,
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
        'Another module is used through its *.module, *.service, *.guard, *.decorator, *.errors and *.types files; its entities, DTOs and queues are its own. An entity may point at an entity further down, for the foreign key.',
      severity: 'error',
      from: { path: '^src/modules/([^/]+)/', pathNot: '\\.entity\\.ts$' },
      to: {
        path: '^src/modules/',
        pathNot: ['^src/modules/$1/', '\\.(module|service|guard|decorator|errors|types)\\.ts$'],
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
        pathNot: ['^src/modules/$1/', '\\.(module|service|guard|decorator|errors|types|entity)\\.ts$'],
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
      from: { path: '^src/', pathNot: [roots, '\\.spec\\.ts$'] },
      to: { path: roots },
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
      to: { dependencyTypes: ['npm-no-pkg', 'npm-unknown'], dependencyTypesNot: ['type-only'] },
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
