"""From a rewritten graph to machine code in memory. Each package is a stage or what a stage is made of; pipeline/ is
the line on one screen.

    schedule, lower, transform    graph to plan, plan to loops, loops to better loops
    frontend, vectorize, vecmath  source to LLVM IR
    llvm, link, server            IR to objects, objects to an image, and the process that does so
    gemm, threads, call           matrix products, the pool of threads, the native entry point
    cache, pipeline               what is kept on disk, and all of it in order
"""
