import { describe, expect, it } from '@jest/globals';
import { Controller, Delete, Get, Module, Post, type Type } from '@nestjs/common';
import { ModulesContainer, NestFactory } from '@nestjs/core';
import { Public } from '../../platform/http/public.decorator.js';
import { routeTable } from '../../platform/http/route-table.js';
import { StartError } from '../../config/env.js';
import { checkRoutes, declarationOf } from './access.service.js';
import { Access } from './access.decorator.js';
import type { AccessTerms } from './access.types.js';

@Controller('servers')
class GoodController {
  @Get(':name')
  @Access('servers:read')
  get(): void {}

  @Delete(':name/items/*rest')
  @Access('servers:write', { owner: 'name' })
  remove(): void {}
}

@Public()
@Controller('health')
class OpenController {
  @Get()
  health(): void {}

  /** The declaration of a method overrides the one of its class. */
  @Get('detail')
  @Access('servers:read')
  detail(): void {}
}

@Controller('servers')
class ForgetfulController {
  @Get('a')
  forgotten(): void {}

  @Post('b')
  alsoForgotten(): void {}

  @Get('c')
  @Access('servers:read')
  declared(): void {}
}

@Controller(':anything')
class GreedyController {
  @Get()
  @Access('servers:read')
  get(): void {}
}

@Controller('accounts/:accountId')
class MisspeltController {
  @Get()
  @Access('accounts:read', { account: 'account' })
  get(): void {}

  @Delete()
  @Access('accounts:write', { owner: 'namespace' })
  remove(): void {}
}

async function routesOf(...controllers: Type[]) {
  @Module({ controllers })
  class AnyModule {}
  return routeTable((await NestFactory.create(AnyModule, { logger: false, preview: true })).get(ModulesContainer));
}

async function faults(...controllers: Type[]): Promise<string[]> {
  const routes = await routesOf(...controllers);
  try {
    checkRoutes(routes);
    return [];
  } catch (error) {
    expect(error).toBeInstanceOf(StartError);
    return (error as Error).message.split('\n');
  }
}

describe('checkRoutes', () => {
  it('accepts routes that declare their access', async () => {
    expect(await faults(GoodController, OpenController)).toEqual([]);
  });

  it('names each route without a declaration, and no other', async () => {
    expect(await faults(GoodController, ForgetfulController)).toEqual([
      'GET /servers/a declares neither @Access(…) nor @Public(), nor @Page(…) for a page',
      'POST /servers/b declares neither @Access(…) nor @Public(), nor @Page(…) for a page',
    ]);
  });

  it('names a route that begins with a parameter', async () => {
    expect(await faults(GreedyController)).toEqual([
      'GET /:anything must begin with a word: ":anything" matches every path',
    ]);
  });

  it('names a route whose rule refers to a parameter that the route does not have', async () => {
    expect(await faults(MisspeltController)).toEqual([
      'GET /accounts/:accountId has no parameter "account" to check',
      'DELETE /accounts/:accountId has no parameter "namespace" to check',
    ]);
  });

  it('reads the declaration of the method before that of its class', async () => {
    const declared = (await routesOf(OpenController)).map((route) => [route.path, declarationOf(route)]);
    expect(declared).toEqual([
      ['/health', 'public'],
      ['/health/detail', { scope: 'servers:read' }],
    ]);
  });
});

describe('the terms of an access rule', () => {
  it('have one shape, or do not compile', () => {
    const mixed: AccessTerms[] = [
      // @ts-expect-error -- An account and a namespace.
      { account: 'accountId', owner: 'namespace' },
      // @ts-expect-error -- Grants of a namespace without a namespace.
      { inNamespace: true },
      // @ts-expect-error -- An action without a target.
      { may: 'own' },
      // @ts-expect-error -- All members, at a route for the account and the operator.
      { account: 'accountId', member: true },
      // @ts-expect-error -- Grants of tools, at a route that no grant opens.
      { owner: 'namespace', may: 'administer', byTool: true },
      // @ts-expect-error -- Callers without a key, at a route of the operator.
      { operator: true, anonymous: true },
      // @ts-expect-error -- A level of keys, which the scope names.
      { owner: 'namespace', may: 'manage' },
    ];
    expect(mixed).toHaveLength(7);
  });
});
