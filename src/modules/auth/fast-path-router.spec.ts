import { describe, expect, it } from '@jest/globals';
import {
  Controller,
  Get,
  Injectable,
  Module,
  Param,
  Post,
  Req,
  Res,
  UseGuards,
  UseInterceptors,
  UsePipes,
  ValidationPipe,
  type CallHandler,
  type CanActivate,
  type ExecutionContext,
  type NestInterceptor,
  type Type,
} from '@nestjs/common';
import { ModulesContainer, APP_INTERCEPTOR, NestFactory } from '@nestjs/core';
import { loadEnv } from '../../config/env.js';
import { ErrorFilter } from '../../platform/errors/error.filter.js';
import type { BodyBudget } from '../../platform/http/body/body-budget.js';
import { InputPipe } from '../../platform/http/input.pipe.js';
import { Public } from '../../platform/http/public.decorator.js';
import { routeTable } from '../../platform/http/route-table.js';
import { Access, FastPath } from './access.decorator.js';
import type { Admission } from './admission.service.js';
import type { RequestLimits } from './request-limits.service.js';
import { FastPathRouter, globalEnhancers } from './fast-path-router.js';

@Injectable()
class TimeGuard implements CanActivate {
  canActivate(): boolean {
    return true;
  }
}

@Injectable()
class TimeInterceptor implements NestInterceptor {
  intercept(_context: ExecutionContext, next: CallHandler) {
    return next.handle();
  }
}

@Controller('calls')
class PlainController {
  @Post(':name')
  @FastPath()
  @Access('servers:execute', { owner: 'name' })
  call(@Req() _request: unknown, @Res() _response: unknown): void {}

  /** Not on the fast path, so everything runs. */
  @Get(':name')
  @UseGuards(TimeGuard)
  @Access('servers:read', { anonymous: true })
  get(@Param('name') _name: string): void {}
}

@Controller('calls')
class RuleController {
  @Get('a')
  @FastPath()
  @Access('servers:read', { anonymous: true, signed: true })
  read(): void {}

  @Get(':id')
  @FastPath()
  @Access('accounts:read', { account: 'id' })
  account(): void {}

  @Get('b')
  @FastPath()
  @Public()
  open(): void {}

  @Post('c')
  @FastPath()
  @Access('servers:execute', { anonymous: true })
  write(): void {}
}

@UseGuards(TimeGuard)
@Controller('calls')
class EnhancedController {
  @Post('a')
  @FastPath()
  @UseInterceptors(new TimeInterceptor())
  @UsePipes(ValidationPipe)
  @Access('servers:execute')
  call(@Req() _request: unknown, @Res() _response: unknown): void {}
}

@Controller('calls')
class ParameterController {
  @Post(':name')
  @FastPath()
  @Access('servers:execute')
  call(@Param('name') _name: string): void {}
}

/** Starts an app with one controller as `createApp` does, and makes its router. */
async function routerOf(controller: Type, providers: object[] = []): Promise<FastPathRouter> {
  class TestModule {}
  Module({ controllers: [controller], providers: providers as never })(TestModule);
  const app = await NestFactory.create(TestModule, { logger: false });
  try {
    app.useGlobalPipes(new InputPipe());
    app.useGlobalFilters(new ErrorFilter(app.get(ModulesContainer), loadEnv({})));
    return new FastPathRouter(
      routeTable(app.get(ModulesContainer)),
      {} as Admission,
      {} as BodyBudget,
      {} as RequestLimits,
      globalEnhancers(app),
    );
  } finally {
    await app.close();
  }
}

describe('a route on the fast path', () => {
  it('may be a read without a key', async () => {
    @Controller('calls')
    class ReadController {
      @Get('a')
      @FastPath()
      @Access('servers:read', { anonymous: true })
      read(@Req() _request: unknown, @Res() _response: unknown): void {}
    }
    await expect(routerOf(ReadController)).resolves.toBeInstanceOf(FastPathRouter);
  });

  it('may have an owner rule, and the global pipe and filter that the router replaces', async () => {
    await expect(routerOf(PlainController)).resolves.toBeInstanceOf(FastPathRouter);
  });

  it('is refused with access rules that the router does not apply, each named', async () => {
    const starting = routerOf(RuleController);
    for (const fault of [
      'GET /calls/a has @FastPath(), which does not run the rule "signed"',
      'POST /calls/c has @FastPath(), which does not run the rule "anonymous"',
      'GET /calls/:id has @FastPath(), which does not run the rule "account"',
      'GET /calls/b has @FastPath(), which does not run @Public()',
    ]) {
      await expect(starting).rejects.toThrow(fault);
    }
  });

  it.each(['TimeGuard', 'TimeInterceptor', 'ValidationPipe'])('is refused with %s', async (name) => {
    const fault = `POST /calls/a has @FastPath(), which does not run ${name}`;
    await expect(routerOf(EnhancedController)).rejects.toThrow(fault);
  });

  it('is refused with parameters that Nest would fill', async () => {
    await expect(routerOf(ParameterController)).rejects.toThrow('parameters besides @Req() and @Res()');
  });

  it('is refused with a global interceptor that a module adds', async () => {
    const added = [{ provide: APP_INTERCEPTOR, useClass: TimeInterceptor }];
    await expect(routerOf(PlainController, added)).rejects.toThrow(
      'POST /calls/:name has @FastPath(), which does not run TimeInterceptor',
    );
  });
});
