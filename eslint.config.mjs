import js from '@eslint/js';
import tseslint from 'typescript-eslint';

const nestCommon = '@nestjs/common';

const dtoReason =
  'Import DTO classes as values: with `import type` the compiler writes no metadata, and the validation pipe silently checks nothing.';

const noBarrels = {
  selector: 'ExportAllDeclaration',
  message: 'No barrels: import from the file that defines the thing, so that boundaries can be checked.',
};

/** Hand-written SQL stands in repositories, with typed parameters and rows. */
const noSql = [
  {
    selector: 'CallExpression[callee.property.name=/^(query|createQueryBuilder)$/]',
    message: 'Hand-written SQL and query builders belong into an @Injectable() repository, in a *.repository.ts file.',
  },
  {
    selector: 'NewExpression[callee.name="PreparedStatement"]',
    message: 'Prepared statements stand in the *.repository.ts file that runs them.',
  },
];

/** Both sides are accounts: a comparison with null or undefined asks whether there is one. */
const noOwnComparison = {
  selector:
    'BinaryExpression[operator=/^[!=]==?$/]' +
    ':matches([left.name=/^(accountId|ownerId)$/], [left.property.name=/^(accountId|ownerId)$/], ' +
    '[right.name=/^(accountId|ownerId)$/], [right.property.name=/^(accountId|ownerId)$/])' +
    ':not([left.type="Literal"], [right.type="Literal"])' +
    ':not([left.type="Identifier"][left.name="undefined"], [right.type="Identifier"][right.name="undefined"])',
  message:
    'Who may do what with a thing of an account: AccessService.isAllowed, of a server ServerAccessService.isAllowed. Only fairness, ' +
    'limits and what is held for one account compare accounts, and say so.',
};

/**
 * HTML is made by the tag `html`, which escapes values. `</` cannot stand in a pattern of a selector: closing tags are not
 * looked for.
 */
const markup = '/^\\s*<(!doctype|[a-z][a-z0-9]*[ >])/i';
const noMarkup = [
  ...[
    `Literal[value=${markup}]`,
    `:not(TaggedTemplateExpression) > TemplateLiteral > TemplateElement:first-child[value.cooked=${markup}]`,
    `TaggedTemplateExpression[tag.name!="html"] > TemplateLiteral > TemplateElement:first-child[value.cooked=${markup}]`,
  ].map((selector) => ({ selector, message: 'Markup is made by the tag `html` of platform/pages/html.ts.' })),
  {
    selector: 'NewExpression[callee.name="Html"]',
    message: 'Only platform/pages declares text as markup: elsewhere the tag `html` makes it.',
  },
];

const noSetInterval = {
  name: 'setInterval',
  message:
    'Periodic work of the process: Schedule.every(…). A timer of one object: repeat(…). Both in platform/schedule.',
};

/** The roles that Nest itself names: a class of one stands in a file with that suffix. */
const roleOutsideItsFile = ['Controller', 'Module', 'Repository', 'Guard', 'Gateway'].map((role) => ({
  role,
  rule: {
    selector: `ClassDeclaration[id.name=/${role}$/]`,
    message: `A class ${role} stands in a *.${role.toLowerCase()}.ts file.`,
  },
}));
const rolesExcept = (suffix) =>
  roleOutsideItsFile.filter(({ role }) => role.toLowerCase() !== suffix).map(({ rule }) => rule);

/** Where Nest reads DTO classes from the compiled signature: only controllers. */
const noTypeOnlyDtos = [
  {
    selector:
      'ImportDeclaration[importKind="type"]:matches([source.value=/\\.dto\\.js$/], :has(ImportSpecifier[imported.name=/Dto$/]))',
    message: dtoReason,
  },
  { selector: 'ImportSpecifier[importKind="type"][imported.name=/Dto$/]', message: dtoReason },
];

/**
 * V8 copies an object that is spread before further members property by property: 2 to 8 µs a call instead of 0.02 for a
 * literal.
 */
const noLeadingSpread = {
  selector: 'ObjectExpression > SpreadElement:not(:last-child)',
  message: 'On the path of a call, write one literal with all members: a spread before others costs 2 to 8 µs.',
};

/** Files that a warm call runs: a request to a tool, an MCP endpoint or a run endpoint, whose session is open. */
const callPath = [
  'src/mcp/protocol/{cancellation,deadline,json-edit,json-text,trace-context,via}.ts',
  'src/mcp/server/{classify,legacy-server,mcp-http-server,mcp-request,mcp-server,modern-server}.ts',
  'src/mcp/server/{response-sink,tool-metadata-cache,upstream-calls}.ts',
  'src/mcp/server/sessions/{live-sessions,session-ids}.ts',
  'src/modules/run/run.service.ts',
  'src/modules/connections/log/log-recorder.ts',
  'src/modules/connections/tools/connection-tools.service.ts',
  'src/platform/http/{canonical-path,client-address,cors,json-answer,response-backlog,route-table}.ts',
  'src/platform/http/body/*.ts',
];
const callPathControllers = [
  'src/modules/connections/connection-mcp.controller.ts',
  'src/modules/connections/tools/connection-tools.controller.ts',
  'src/modules/run/run.controller.ts',
];

const noForwardRef = {
  name: nestCommon,
  importNames: ['forwardRef'],
  message: 'No forwardRef: it hides a cycle. Pass in a listener or use a queue.',
};
const noProcessEnvImport = ['node:process', 'process'].map((name) => ({
  name,
  importNames: ['env'],
  message: 'Settings come from Env (src/config), validated once at start.',
}));
const noHttpException = {
  group: [nestCommon],
  importNamePattern: 'Exception$',
  message: 'Throw a DomainError: the error filter decides status and body in one place.',
};

const noProcessEnv = {
  object: 'process',
  property: 'env',
  message: 'Settings come from Env (src/config), validated once at start.',
};
const noModuleMocks = ['mock', 'doMock', 'setMock', 'unstable_mockModule'].map((property) => ({
  object: 'jest',
  property,
  message: 'No module mocks: pass a fake to the constructor or use overrideProvider.',
}));

const nodeGlobals = Object.fromEntries(
  [
    ...['AbortController', 'AbortSignal', 'Atomics', 'Buffer', 'SharedArrayBuffer', 'URL', 'URLSearchParams'],
    ...[
      'FormData',
      'TextDecoder',
      'TextEncoder',
      'clearInterval',
      'clearTimeout',
      'console',
      'fetch',
      'performance',
      'process',
    ],
    ...['queueMicrotask', 'setImmediate', 'setInterval', 'setTimeout', 'structuredClone'],
  ].map((name) => [name, 'readonly']),
);

export default tseslint.config(
  { ignores: ['dist/', 'node_modules/', 'coverage/', '.data/', 'test/vendor/'] },
  { linterOptions: { reportUnusedDisableDirectives: 'error' } },
  js.configs.recommended,

  // TypeScript, with types.
  {
    files: ['**/*.ts'],
    extends: [tseslint.configs.recommendedTypeChecked],
    languageOptions: { parserOptions: { projectService: true, tsconfigRootDir: import.meta.dirname } },
    rules: {
      '@typescript-eslint/no-floating-promises': 'error',
      '@typescript-eslint/no-misused-promises': 'error',
      '@typescript-eslint/no-explicit-any': 'error',
      // Without a default every case must be written; writing a default is a decision.
      '@typescript-eslint/switch-exhaustiveness-check': ['error', { considerDefaultExhaustiveForUnions: true }],
      // A handler is async by contract, not because it waits.
      '@typescript-eslint/require-await': 'off',
      '@typescript-eslint/no-unused-vars': ['error', { argsIgnorePattern: '^_', ignoreRestSiblings: true }],
      '@typescript-eslint/restrict-template-expressions': ['error', { allowNumber: true, allowBoolean: true }],
      // Passing on what was caught is not throwing something odd.
      '@typescript-eslint/prefer-promise-reject-errors': [
        'error',
        { allowThrowingAny: true, allowThrowingUnknown: true },
      ],
      // Nest modules are empty classes that carry a decorator.
      '@typescript-eslint/no-extraneous-class': 'off',
      'no-console': 'error',
      'no-restricted-syntax': ['error', noBarrels],
      'no-restricted-imports': ['error', { paths: [noForwardRef, ...noProcessEnvImport] }],
      'no-restricted-properties': ['error', noProcessEnv, ...noModuleMocks],
    },
  },
  {
    files: ['src/modules/**/*.ts', 'src/mcp/**/*.ts'],
    rules: {
      'no-restricted-imports': ['error', { paths: [noForwardRef, ...noProcessEnvImport], patterns: [noHttpException] }],
    },
  },
  {
    files: ['src/**/*.ts'],
    rules: {
      'no-restricted-syntax': ['error', noBarrels, noOwnComparison, ...noMarkup, ...noSql, ...rolesExcept()],
      'no-restricted-globals': ['error', noSetInterval],
    },
  },
  {
    files: ['src/**/*.controller.ts'],
    rules: {
      'no-restricted-syntax': [
        'error',
        noBarrels,
        noOwnComparison,
        ...noMarkup,
        ...noTypeOnlyDtos,
        ...noSql,
        ...rolesExcept('controller'),
      ],
    },
  },
  {
    files: callPath,
    rules: {
      'no-restricted-syntax': [
        'error',
        noBarrels,
        noOwnComparison,
        ...noMarkup,
        ...noSql,
        ...rolesExcept(),
        noLeadingSpread,
      ],
    },
  },
  {
    files: callPathControllers,
    rules: {
      'no-restricted-syntax': [
        'error',
        noBarrels,
        noOwnComparison,
        ...noMarkup,
        ...noTypeOnlyDtos,
        ...noSql,
        ...rolesExcept('controller'),
        noLeadingSpread,
      ],
    },
  },
  {
    files: ['src/**/*.repository.ts'],
    rules: { 'no-restricted-syntax': ['error', noBarrels, noOwnComparison, ...noMarkup, ...rolesExcept('repository')] },
  },
  ...['module', 'guard', 'gateway'].map((suffix) => ({
    files: [`src/**/*.${suffix}.ts`],
    rules: {
      'no-restricted-syntax': ['error', noBarrels, noOwnComparison, ...noMarkup, ...noSql, ...rolesExcept(suffix)],
    },
  })),
  {
    // The answers to the question themselves.
    files: ['src/modules/auth/{may,access.service}.ts'],
    rules: { 'no-restricted-syntax': ['error', noBarrels, ...noMarkup, ...noSql, ...rolesExcept()] },
  },
  {
    files: ['src/platform/pages/**/*.ts'],
    rules: { 'no-restricted-syntax': ['error', noBarrels, noOwnComparison, ...noSql, ...rolesExcept()] },
  },
  {
    files: ['src/platform/{checks,database,queue,embedded}/**/*.ts'],
    rules: { 'no-restricted-syntax': ['error', noBarrels, ...noMarkup] },
  },
  { files: ['src/**/*.spec.ts'], rules: { 'no-restricted-syntax': ['error', noBarrels] } },
  { files: ['src/platform/schedule/repeat.ts', 'src/**/*.spec.ts'], rules: { 'no-restricted-globals': 'off' } },
  {
    files: ['src/config/**/*.ts'],
    rules: {
      'no-restricted-imports': ['error', { paths: [noForwardRef] }],
      'no-restricted-properties': ['error', ...noModuleMocks],
    },
  },
  {
    files: ['**/index.ts'],
    rules: {
      'no-restricted-syntax': [
        'error',
        { selector: 'Program', message: 'No barrels: name the file after what it holds.' },
      ],
    },
  },

  // Tests read bodies that are `any` by nature and pass methods around.
  {
    files: ['test/**/*.ts', 'scripts/new-module/*/test/**/*.ts', '**/*.spec.ts', 'bench/**/*.ts'],
    rules: {
      '@typescript-eslint/no-unsafe-argument': 'off',
      '@typescript-eslint/no-unsafe-assignment': 'off',
      '@typescript-eslint/no-unsafe-call': 'off',
      '@typescript-eslint/no-unsafe-member-access': 'off',
      '@typescript-eslint/no-unsafe-return': 'off',
      '@typescript-eslint/no-base-to-string': 'off',
      '@typescript-eslint/unbound-method': 'off',
    },
  },
  {
    files: ['test/**/*.ts', 'bench/**/*.ts', 'packages/**/*.ts'],
    rules: {
      'no-restricted-imports': ['error', { paths: [noForwardRef] }],
      'no-restricted-properties': ['error', ...noModuleMocks],
    },
  },
  { files: ['bench/**/*.ts'], rules: { 'no-console': 'off' } },
  // Runs inside hosted programs, where the console is the program's log.
  { files: ['src/hosting/worker/bootstrap/**/*.ts'], rules: { 'no-console': 'off' } },

  // Plain JavaScript: scripts and configuration, without types.
  {
    files: ['**/*.{js,mjs,cjs}'],
    languageOptions: { globals: nodeGlobals },
    rules: { 'no-unused-vars': ['error', { argsIgnorePattern: '^_', ignoreRestSiblings: true }] },
  },
  {
    files: ['**/*.cjs'],
    languageOptions: {
      sourceType: 'commonjs',
      globals: { module: 'writable', require: 'readonly', __dirname: 'readonly' },
    },
  },
);
